#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <string>
#include <thread>

#include "gateway/http/server.hpp"

namespace fixpoint {

struct Cores::Impl {
  struct Core {
    net::io_context context{1};  // one thread runs it
    net::executor_work_guard<Executor> work{context.get_executor()};
    std::thread thread;
  };
  std::vector<std::unique_ptr<Core>> cores;
};

Cores::Cores(std::size_t count) : impl_(std::make_unique<Impl>()) {
  if (count == 0) count = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < count; ++i) impl_->cores.push_back(std::make_unique<Impl::Core>());
}

Cores::~Cores() {
  stop();
}

std::size_t Cores::size() const {
  return impl_->cores.size();
}

net::io_context& Cores::context(std::size_t core) {
  return impl_->cores.at(core)->context;
}

void Cores::start() {
  for (std::size_t i = 0; i < size(); ++i) {
    Impl::Core& core = *impl_->cores[i];
    if (core.thread.joinable()) continue;
    core.thread = std::thread([&core] { core.context.run(); });
    // At most 15 characters, for top and debuggers.
    const std::string name = "core-" + std::to_string(i);
    pthread_setname_np(core.thread.native_handle(), name.c_str());
  }
}

void Cores::stop() {
  for (auto& core : impl_->cores) core->context.stop();
  for (auto& core : impl_->cores) {
    if (core->thread.joinable()) core->thread.join();
  }
}

}  // namespace fixpoint
