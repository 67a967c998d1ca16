#include "local_engine/request_check.hpp"

#include <cmath>

namespace fixpoint::engine {
namespace {

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

tl::unexpected<Error> refuse(std::string field, std::string message) {
  return tl::make_unexpected(Error{ErrorCode::bad_request, std::move(message), std::move(field)});
}

Result<void> check_sampling(const SamplingParams& p, std::size_t vocabulary) {
  const auto outside = [](const char* field, double value, const char* range) {
    return refuse(field, std::string(field) + " is " + number(value) + "; it must be " + range);
  };
  // Written so that NaN fails each of them.
  if (!(p.temperature >= 0 && p.temperature <= 2)) {
    return outside("temperature", static_cast<double>(p.temperature), "0 to 2");
  }
  if (p.top_k < 0) return outside("top_k", p.top_k, "0 (off) or more");
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return outside("top_p", static_cast<double>(p.top_p), "greater than 0 and at most 1");
  }
  if (!(p.min_p >= 0 && p.min_p < 1)) {
    return outside("min_p", static_cast<double>(p.min_p), "at least 0 and less than 1");
  }
  if (!(std::abs(p.presence_penalty) <= 2)) {
    return outside("presence_penalty", static_cast<double>(p.presence_penalty), "-2 to 2");
  }
  if (!(std::abs(p.frequency_penalty) <= 2)) {
    return outside("frequency_penalty", static_cast<double>(p.frequency_penalty), "-2 to 2");
  }
  if (p.logit_bias.size() > kMaxLogitBias) {
    return refuse("logit_bias", "logit_bias has " + std::to_string(p.logit_bias.size()) +
                                    " entries; the limit is " + std::to_string(kMaxLogitBias));
  }
  for (const auto& [id, bias] : p.logit_bias) {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary) {
      return refuse("logit_bias", "logit_bias names token " + std::to_string(id) +
                                      "; the model has tokens 0 to " +
                                      std::to_string(vocabulary - 1));
    }
    if (!(std::abs(bias) <= 100)) {
      return outside("logit_bias", static_cast<double>(bias), "-100 to 100");
    }
  }
  return {};
}

Result<void> check_stops(const std::vector<std::string>& stops) {
  if (stops.size() > kMaxStops) {
    return refuse("stop", "stop has " + std::to_string(stops.size()) + " strings; the limit is " +
                              std::to_string(kMaxStops));
  }
  for (const std::string& stop : stops) {
    if (stop.empty())
      return refuse("stop", "stop has an empty string; each must have 1 to 256 bytes");
    if (stop.size() > kMaxStopBytes) {
      return refuse("stop", "stop has a string of " + std::to_string(stop.size()) +
                                " bytes; the limit is " + std::to_string(kMaxStopBytes));
    }
  }
  return {};
}

}  // namespace

Result<void> check_request(const GenerateRequest& request, const RequestLimits& limits) {
  if (request.prompt.empty()) return refuse("", "prompt is empty; it must have at least one token");
  for (const TokenId id : request.prompt) {
    if (id < 0 || static_cast<std::size_t>(id) >= limits.vocabulary) {
      return refuse("", "prompt has token " + std::to_string(id) + "; the model has tokens 0 to " +
                            std::to_string(limits.vocabulary - 1));
    }
  }
  // All of max_tokens must fit behind the prompt, and one token where it is not given.
  const std::size_t wanted = request.max_tokens.value_or(1);
  if (request.prompt.size() > limits.context || wanted > limits.context - request.prompt.size()) {
    std::string asked = "the prompt has " + std::to_string(request.prompt.size()) + " tokens";
    if (request.max_tokens) {
      asked += " and max_tokens is " + std::to_string(*request.max_tokens);
    }
    return fail(ErrorCode::context_exceeded, asked + "; together they must fit the context of " +
                                                 std::to_string(limits.context) + " tokens");
  }
  if (request.top_logprobs < 0 || request.top_logprobs > kMaxTopLogprobs) {
    return refuse("top_logprobs", "top_logprobs is " + std::to_string(request.top_logprobs) +
                                      "; it must be 0 to " + std::to_string(kMaxTopLogprobs));
  }
  if (auto stops = check_stops(request.stop); !stops) return stops;
  return check_sampling(request.sampling, limits.vocabulary);
}

}  // namespace fixpoint::engine
