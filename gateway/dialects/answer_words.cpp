#include "gateway/dialects/answer_words.hpp"

#include <algorithm>

namespace fixpoint::dialects {
namespace {

std::uint64_t detail(const Json& usage, const char* details, const char* name) {
  const Json* found = object_member(usage, details);
  return found ? count_member(*found, name) : 0;
}

}  // namespace

std::string id_with_prefix(const std::string& id, std::string_view prefix) {
  std::string_view rest = id;
  for (const std::string_view known : {"chatcmpl-", "msg_", "resp_"}) {
    if (!rest.starts_with(known)) continue;
    rest.remove_prefix(known.size());
    break;
  }
  return std::string(prefix).append(rest.empty() ? "0" : rest);
}

Result<std::string> chat_finish_reason(const std::string& reason) {
  if (reason == "end_turn" || reason == "stop_sequence") return "stop";
  if (reason == "tool_use") return "tool_calls";
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") return "length";
  if (reason == "refusal") return "content_filter";
  return fail(ErrorCode::protocol,
              "the stop_reason '" + reason + "' has no counterpart in OpenAI's chat/completions");
}

Result<std::string> message_stop_reason(const std::string& reason, bool any_call,
                                        bool any_refusal) {
  if (reason == "length") return "max_tokens";
  if (reason == "model_context_window_exceeded") return reason;  // not OpenAI's, but used with it
  if (reason == "content_filter" || any_refusal) return "refusal";
  if (reason == "tool_calls" || (reason == "stop" && any_call)) return "tool_use";
  if (reason == "stop") return "end_turn";
  return fail(ErrorCode::protocol,
              "the finish_reason '" + reason + "' has no counterpart in Anthropic's messages");
}

Json chat_usage(const Json& usage) {
  const auto cached = count_member(usage, "cache_read_input_tokens");
  const auto written = count_member(usage, "cache_creation_input_tokens");
  const auto prompt = count_member(usage, "input_tokens") + cached + written;
  const auto completion = count_member(usage, "output_tokens");
  Json out = {{"prompt_tokens", prompt},
              {"completion_tokens", completion},
              {"total_tokens", prompt + completion},
              {"prompt_tokens_details", {{"cached_tokens", cached}}}};
  if (written > 0) out["prompt_tokens_details"]["cache_write_tokens"] = written;
  if (object_member(usage, "output_tokens_details")) {
    out["completion_tokens_details"] = {
        {"reasoning_tokens", detail(usage, "output_tokens_details", "thinking_tokens")}};
  }
  return out;
}

Json message_usage(const Json& usage) {
  const auto prompt = count_member(usage, "prompt_tokens");
  const auto cached = std::min(prompt, detail(usage, "prompt_tokens_details", "cached_tokens"));
  const auto written =
      std::min(prompt - cached, detail(usage, "prompt_tokens_details", "cache_write_tokens"));
  return {{"input_tokens", prompt - cached - written},
          {"cache_creation_input_tokens", written},
          {"cache_read_input_tokens", cached},
          {"output_tokens", count_member(usage, "completion_tokens")}};
}

Json response_usage(const Json& usage) {
  const auto prompt = count_member(usage, "prompt_tokens");
  const auto completion = count_member(usage, "completion_tokens");
  return {{"input_tokens", prompt},
          {"input_tokens_details",
           {{"cached_tokens", detail(usage, "prompt_tokens_details", "cached_tokens")},
            {"cache_write_tokens", detail(usage, "prompt_tokens_details", "cache_write_tokens")}}},
          {"output_tokens", completion},
          {"output_tokens_details",
           {{"reasoning_tokens", detail(usage, "completion_tokens_details", "reasoning_tokens")}}},
          {"total_tokens", prompt + completion}};
}

}  // namespace fixpoint::dialects
