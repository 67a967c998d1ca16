#include "tests/support/mock_counters.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/mock_answers.hpp"

namespace fixpoint::test {
namespace {

std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

MockTurn MockCounters::count(const MockRequest& request) {
  const std::lock_guard lock(mutex_);
  MockTurn turn{++calls_, 1};
  if (mock_generates(request.path)) {
    ++requests_;
    const std::string model = mock_model(request.body);
    ++by_model_[model];
    ++by_path_[request.path];
    if (model.find("-retry-") != std::string::npos) {
      turn.attempt = ++attempts_[mock_hash(request.path + request.body)];
    }
  }
  last_headers_ = request.headers;
  last_body_ = request.body;
  if (record_ > 0) {
    recorded_.push_back(request);
    if (recorded_.size() > record_) recorded_.pop_front();
  }
  return turn;
}

void MockCounters::reset(std::size_t record) {
  connections = aborted = resumed = 0;
  const std::lock_guard lock(mutex_);
  requests_ = 0;
  by_model_.clear();
  by_path_.clear();
  attempts_.clear();
  last_headers_.clear();
  last_body_.clear();
  record_ = record;
  recorded_.clear();
}

std::string MockCounters::stats() const {
  const std::lock_guard lock(mutex_);
  return text_of({{"requests", requests_},
                  {"by_model", by_model_},
                  {"by_path", by_path_},
                  {"connections", connections.load()},
                  {"aborted", aborted.load()},
                  {"tls_resumed", resumed.load()},
                  {"last_headers", last_headers_},
                  {"last_body", last_body_}});
}

std::string MockCounters::recorded() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json list = nlohmann::json::array();
  for (const MockRequest& request : recorded_) {
    list.push_back({{"method", request.method},
                    {"path", request.path},
                    {"headers", request.headers},
                    {"body", request.body}});
  }
  return text_of(list);
}

std::uint64_t MockCounters::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::uint64_t MockCounters::requests(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_model_.find(model);
  return found == by_model_.end() ? 0 : found->second;
}

}  // namespace fixpoint::test
