"""Bad input gets the SDKs' error shape and leaves the server serving."""
import json
import socket
import unittest

from harness import GatewayTest, call


class BadInput(GatewayTest):
    def post(self, body, path="/v1/chat/completions"):
        return call(self.gateway.port, "POST", path, body)

    def tearDown(self):
        self.assert_serving()

    def test_no_json(self):
        for body in (b"", b"hello", b"{", b'{"model": "mock",}', b"[1]", b'"x"', b"\xff\xfe", b"null",
                     b'{"model":"mock","messages":[{"role":"user","content":"\xc3"}]}'):
            with self.subTest(body=body):
                self.assert_error(self.post(body), 400)

    def test_wrong_types(self):
        good = {"model": "mock", "messages": [{"role": "user", "content": "x"}]}
        for name, value in (("model", 1), ("model", ""), ("model", None), ("messages", "x"), ("messages", {}),
                            ("messages", []), ("stream", "yes"),
                            ("stream_options", 1), ("temperature", "hot"), ("seed", 1.5)):
            with self.subTest(name=name, value=value):
                error = self.assert_error(self.post({**good, name: value}), 400)
                self.assertTrue(error["param"].startswith(name))

    def test_prompt_of_completions(self):
        for body in ({"model": "mock"}, {"model": "mock", "prompt": 1}):
            self.assert_error(self.post(body, "/v1/completions"), 400, param="prompt")

    def test_duplicate_members(self):
        error = self.assert_error(self.post(b'{"model":"mock","model":"other","messages":[{"role":"user","content":"x"}]}'), 400)
        self.assertIn("model", error["message"])

    def test_deep_nesting(self):
        self.assert_error(self.post(b'{"model":"mock","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), 400)

    def test_numbers_beyond_a_double(self):
        self.assert_error(self.post(b'{"model":"mock","temperature":1e999,"messages":[{"role":"user","content":"x"}]}'), 400)

    def test_a_body_of_100_mb_is_413(self):
        with socket.create_connection(("127.0.0.1", self.gateway.port), 60) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n")
            try:
                for _ in range(100):
                    connection.sendall(b" " * (1 << 20))
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before it was all sent
            answer = b""
            try:
                while data := connection.recv(65536):
                    answer += data
            except ConnectionResetError:
                pass
        self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer[:200])
        error = json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]
        self.assertEqual(error["type"], "invalid_request_error")

    def test_a_web_page_of_another_origin_cannot_use_the_gateway(self):
        body = {"model": "mock", "messages": [{"role": "user", "content": "x"}]}
        for headers in ({"Origin": "http://evil.example", "Content-Type": "text/plain"}, {"Host": "evil.example"},
                        {"Origin": "null"}):
            answer = call(self.gateway.port, "POST", "/v1/chat/completions", body, headers)
            self.assert_error(answer, 403, "foreign_origin")
        answer = call(self.gateway.port, "POST", "/v1/chat/completions", body, {"Origin": "http://localhost:3000"})
        self.assertEqual(answer.status, 200)

    def test_many_members(self):
        metadata = {f"m{i}": i for i in range(100_001)}
        self.assert_error(self.post({"model": "mock", "metadata": metadata,
                                     "messages": [{"role": "user", "content": "x"}]}), 400)

    def test_admin_paths_need_the_token(self):
        for headers in ({}, {"Authorization": "Bearer x"}):
            answer = call(self.gateway.port, "POST", "/admin/cache/purge", {}, headers)
            self.assert_error(answer, 401, "invalid_admin_token")

    def test_no_http(self):
        for data in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"\r\n" * 100, b"A" * 100_000):
            with socket.create_connection(("127.0.0.1", self.gateway.port), 30) as connection:
                try:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass


if __name__ == "__main__":
    unittest.main()
