// A blocking TCP server that does exactly what a test says, one connection after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace fixpoint::test {

class ScriptedPeer {
 public:
  explicit ScriptedPeer(int fd) : fd_(fd) {}
  // One request with Content-Length, head and body as received; empty when the client left.
  std::string read_request();
  std::string receive();  // what has come once there is something; empty when the client left
  bool send(std::string_view bytes);
  bool client_left();  // waits up to five seconds for FIN or RST
  // Passes bytes on between the client and 127.0.0.1:port, both ways, until one of them ends.
  void tunnel_to(std::uint16_t port);
  void reset();  // RST when the script returns; otherwise FIN

 private:
  int fd_;
  std::string buffer_;
};

class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedPeer&)>;
  // Connection i runs scripts[i]; the last script serves all that follow.
  explicit ScriptedServer(std::vector<Script> scripts);
  ~ScriptedServer();
  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void serve();

  std::vector<Script> scripts_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int> current_{-1};
  std::thread thread_;
};

}  // namespace fixpoint::test
