// fixpoint_mock_upstream: the mock upstream as a program, for benchmarks and for trying things out.
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "tests/support/mock_upstream.hpp"

int main(int argc, char** argv) {
  fixpoint::test::MockUpstreamOptions options;
  std::vector<std::string> tls;
  CLI::App app("An OpenAI-compatible upstream with scripted behaviour");
  app.add_option("--port", options.port, "Port on 127.0.0.1; 0 lets the system pick");
  app.add_option("--threads", options.threads, "Threads")->check(CLI::Range(1, 64));
  app.add_option("--tls", tls, "Serve HTTPS with this certificate and key (PEM files)")
      ->expected(2);
  CLI11_PARSE(app, argc, argv);
  if (tls.size() == 2) {
    options.cert_file = tls[0];
    options.key_file = tls[1];
  }
  // Blocked before any thread starts, so that only sigwait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    const fixpoint::test::MockUpstream mock(options);
    std::printf("%s\n", mock.base_url().c_str());
    std::fflush(stdout);
    int signal = 0;
    sigwait(&signals, &signal);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fixpoint_mock_upstream: %s\n", error.what());
    return 1;
  }
  return 0;
}
