"""Texts scored by the local engine: `echo` with `logprobs`, several prompts to a request, as evaluation tools ask."""
import json
import struct
import time
import unittest

from harness import PATIENCE_S, GatewayTest, call, in_parallel, tiny_model


def bits(values):
    return [None if value is None else struct.pack("<d", value) for value in values]


class Echo(GatewayTest):
    @classmethod
    def config(cls):
        cls.model = tiny_model(cls.folder)
        return {"models": [{"name": "tiny", "path": cls.model, "threads": 2}],
                "routes": [{"model": "tiny", "local": "tiny", "cache": "off"},
                           {"model": "tiny-cached", "local": "tiny"}]}

    def setUp(self):
        pass  # the mock has no part in this

    def ask(self, prompt, model="tiny", **fields):
        body = {"model": model, "prompt": prompt, "temperature": 0, "seed": 1234, **fields}
        return call(self.gateway.port, "POST", "/v1/completions", body)

    def score(self, prompt, **fields):
        answer = self.ask(prompt, **{"echo": True, "logprobs": 1, "max_tokens": 1, **fields})
        self.assertEqual(answer.status, 200, answer.body)
        return answer

    def test_two_prompts_of_token_ids(self):
        prompts = [[72, 101, 108, 108, 111, 44, 32], list(range(60, 130))]
        answer = self.score(prompts).json()
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1])
        for prompt, choice in zip(prompts, answer["choices"]):
            probs = choice["logprobs"]
            self.assertEqual({name: len(values) for name, values in probs.items()},
                             dict.fromkeys(("tokens", "token_logprobs", "top_logprobs", "text_offset"), len(prompt) + 1))
            self.assertIsNone(probs["token_logprobs"][0])
            self.assertIsNone(probs["top_logprobs"][0])
            self.assertLess(sum(probs["token_logprobs"][1:-1]), 0)
            for logprob, top in list(zip(probs["token_logprobs"], probs["top_logprobs"]))[1:]:
                self.assertEqual(len(top), 1)
                self.assertLessEqual(logprob, max(top.values()))
            alone = self.score(prompt).json()["choices"][0]
            self.assertEqual(alone["text"], choice["text"])
            self.assertEqual(bits(alone["logprobs"]["token_logprobs"]), bits(probs["token_logprobs"]))
        usage = answer["usage"]
        self.assertEqual(usage, {"prompt_tokens": 77, "completion_tokens": 2, "total_tokens": 79})

    def generated(self, count=30):
        """A text's token ids and what was recorded while it was generated."""
        ids, tokens, probs = [65, 66, 67, 68], [], []
        token_of = {}  # by spelling, from echoes of one token each
        every = self.score([[i, 0] for i in range(128)], max_tokens=0).json()["choices"]
        every += self.score([[i, 0] for i in range(128, 256)], max_tokens=0).json()["choices"]
        for i, choice in enumerate(every):
            token_of[choice["logprobs"]["tokens"][0]] = i
        # Merged and control tokens are kept out, so that each spelling is one id.
        bias = {str(i): -100 for i in range(256, 300)}
        answer = self.ask(ids, max_tokens=count, logprobs=2, logit_bias=bias).json()["choices"][0]
        tokens, probs = answer["logprobs"]["tokens"], answer["logprobs"]
        return ids, [token_of[token] for token in tokens], probs

    def test_a_score_has_the_bits_of_the_generation(self):
        ids, more, recorded = self.generated()
        self.assertGreater(len(more), 10)

        def scored(_=0):
            return self.score(ids + more, max_tokens=0, logprobs=2).json()["choices"][0]["logprobs"]

        one = scored()
        self.assertEqual(one["tokens"][len(ids):], recorded["tokens"])
        self.assertEqual(bits(one["token_logprobs"][len(ids):]), bits(recorded["token_logprobs"]))
        self.assertEqual(one["top_logprobs"][len(ids):], recorded["top_logprobs"])
        self.assertTrue(all(other == one for other in in_parallel(8, scored)))

    def test_text_comes_before_what_is_generated(self):
        prompts = ["Once upon a time ", "Füße 日本 "]
        plain = [self.ask(prompt, max_tokens=6).json()["choices"][0]["text"] for prompt in prompts]
        answer = self.ask(prompts, max_tokens=6, echo=True, n=2).json()
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertEqual([choice["text"] for choice in answer["choices"]],
                         [prompts[i // 2] + plain[i // 2] for i in range(4)])
        self.assertTrue(all(choice["logprobs"] is None for choice in answer["choices"]))
        nothing = self.ask(prompts, max_tokens=0, echo=True).json()
        self.assertEqual([choice["text"] for choice in nothing["choices"]], prompts)
        self.assertEqual([choice["finish_reason"] for choice in nothing["choices"]], ["length", "length"])
        self.assertEqual(nothing["usage"]["completion_tokens"], 0)
        offsets = self.score(prompts[1], max_tokens=2).json()["choices"][0]["logprobs"]["text_offset"]
        self.assertEqual(offsets[0], 0)
        self.assertEqual(offsets[-2], len(prompts[1]))  # in characters
        self.assertEqual(offsets, sorted(offsets))

    def test_streams_begin_with_the_prompt(self):
        prompts = ["Once upon", "a time"]
        plain = self.score(prompts, max_tokens=5).json()
        streamed = self.score(prompts, max_tokens=5, stream=True)
        self.assertEqual(streamed.events()[-1], "[DONE]")
        for index, whole in enumerate(plain["choices"]):
            pieces = [c for chunk in streamed.chunks() for c in chunk["choices"] if c["index"] == index]
            self.assertEqual(pieces[0]["text"], prompts[index])
            self.assertIsNone(pieces[0]["logprobs"]["token_logprobs"][0])
            self.assertEqual("".join(piece["text"] for piece in pieces), whole["text"])
            for name, values in whole["logprobs"].items():
                parts = [value for piece in pieces for value in (piece["logprobs"] or {name: []})[name]]
                self.assertEqual(parts, values, name)

    def test_the_end_token_is_counted(self):
        """Who scores by echo leaves the last element out: there must be one for every generated token."""
        end = 299  # <|im_end|>
        for stream in (False, True):
            answer = self.score([1, 2, 3], logit_bias={str(end): 100}, stream=stream)
            pieces = [choice for chunk in (answer.chunks() if stream else [answer.json()])
                      for choice in chunk["choices"]]
            self.assertEqual([name for piece in pieces for name in (piece["logprobs"] or {"tokens": []})["tokens"]][3:],
                             ["<|im_end|>"])
            self.assertEqual(pieces[-1]["finish_reason"], "stop")

    def test_cache(self):
        first = self.score([[1, 2], [3]], model="tiny-cached")
        hit = self.score([[1, 2], [3]], model="tiny-cached")
        self.assertIn("hit", hit.headers["cache-status"])
        self.assertEqual(first.body, hit.body)
        for prompt, fields in (([[1], [2, 3]], {}), ([1, 2, 3], {}), ([[1, 2], [3]], {"echo": False}),
                               ([[1, 2], [3]], {"max_tokens": 0}), ([[1, 2], [4]], {})):
            self.assertNotIn("hit", self.score(prompt, model="tiny-cached", **fields).headers["cache-status"])

    def test_the_log_has_the_completion_only(self):
        answer = self.score([[1, 2, 3], [4, 5]], max_tokens=2)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:  # the log is written behind the answers
            shown = self.gateway.cli("log", "show", answer.headers["x-fixpoint-generation"], "--json", check=False)
            if shown.returncode == 0:
                break
            time.sleep(0.05)
        shown = json.loads(shown.stdout)
        self.assertEqual(len(shown["tokens"]), answer.json()["usage"]["completion_tokens"])

    def test_refused_by_name(self):
        for fields, param in (({"prompt": [[1]] * 129}, "prompt"), ({"prompt": [[1]] * 65, "n": 2}, "prompt"),
                              ({"echo": 1}, "echo"), ({"best_of": 2}, "best_of"), ({"suffix": "x"}, "suffix"),
                              ({"max_tokens": 0}, "max_tokens"), ({"prompt": [[1], [999]]}, "prompt"),
                              ({"prompt": [[1], "x", 3]}, "prompt"), ({"prompt": [1] * 600}, "prompt")):
            with self.subTest(fields=fields):
                self.assert_error(self.ask(fields.pop("prompt", "x"), **fields), 400, param=param)


if __name__ == "__main__":
    unittest.main()
