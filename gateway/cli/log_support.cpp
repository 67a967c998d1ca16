#include "gateway/cli/log_support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

// Text for reading and, because a token may hold half a character, the bytes.
void add_text(Json& json, const std::string& bytes) {
  json["token"] = bytes;
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  json["bytes"] = std::move(list);
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Result<std::unique_ptr<TokenLog>> open_log(const std::string& path,
                                           std::function<void(const std::string&)> on_damaged) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    return fail(ErrorCode::not_found, "there is no token log at " + path + " yet");
  }
  TokenLogOptions options;
  options.path = path;
  options.read_only = true;
  options.on_damaged = std::move(on_damaged);
  return TokenLog::open(options);
}

std::function<void(const std::string&)> LeftOut::listener() {
  return [this](const std::string& generation) {
    ++count_;
    report(session_, {ErrorCode::corrupt, generation + ": its tokens are damaged"});
  };
}

int LeftOut::finish() const {
  if (count_ == 0) return kExitOk;
  const std::string generations = count_ == 1 ? " generation" : " generations";
  return report_failure(
      session_, {ErrorCode::corrupt, std::to_string(count_) + generations + " left out: damaged"});
}

Result<std::optional<std::int64_t>> moment(const std::optional<std::string>& text,
                                           const std::string& option) {
  if (!text) return std::nullopt;
  const auto parsed = parse_moment(*text, now_ms());
  if (!parsed) return fail(parsed.error().code, option + ": " + parsed.error().message);
  return *parsed;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string percent(float logprob) {
  return fixed(100 * std::exp(double{logprob}), 2) + "%";
}

std::string in_quotes(std::string_view bytes) {
  return '"' + safe_text(bytes) + '"';
}

std::string token_text(const LoggedToken& token) {
  return token.redacted && token.bytes.empty() ? "(redacted)" : in_quotes(token.bytes);
}

std::string margin_line(const ThinMargin& thin) {
  const LoggedToken& token = thin.token;
  std::string line = token.margin ? fixed(*token.margin, 4) : "-";
  line += "  " + token_text(token) + " | ";
  for (std::size_t i = 0; i < std::min<std::size_t>(2, token.top.size()); ++i) {
    if (i > 0) line += " / ";
    line += in_quotes(token.top[i].bytes) + ' ' + percent(token.top[i].logprob);
  }
  return line + " | choice " + std::to_string(token.choice) + " position " +
         std::to_string(token.position) + " of " + safe_text(thin.generation) + " (" +
         safe_text(thin.model) + ", " + format_time(thin.created_ms) + ")";
}

Json token_json(const LoggedToken& token) {
  Json json{{"choice", token.choice}, {"position", token.position}, {"id", or_null(token.id)}};
  add_text(json, token.bytes);
  json["logprob"] = token.logprob;
  json["margin"] = or_null(token.margin);
  if (token.redacted) json["redacted"] = true;
  Json top = Json::array();
  for (const LoggedAlternative& alternative : token.top) {
    Json one{{"id", or_null(alternative.id)}};
    add_text(one, alternative.bytes);
    one["logprob"] = alternative.logprob;
    top.push_back(std::move(one));
  }
  json["top"] = std::move(top);
  return json;
}

Json record_json(const GenerationRecord& record) {
  return {{"id", record.id},
          {"created_ms", record.created_ms},
          {"key", record.key},
          {"prompt_hash", record.prompt_hash},
          {"endpoint", record.endpoint},
          {"model", record.model},
          {"requested_model", record.requested_model},
          {"provider", record.provider},
          {"route", record.route},
          {"fingerprint", record.fingerprint},
          {"tenant", record.tenant},
          {"finish_reason", record.finish_reason},
          {"sample", record.sample},
          {"prompt_tokens", record.prompt_tokens},
          {"completion_tokens", record.completion_tokens},
          {"cached_tokens", record.cached_tokens},
          {"cost_microdollars", or_null(record.cost_microdollars)},
          {"attempts", record.attempts},
          {"queue_ms", record.queue_ms},
          {"first_token_ms", record.first_token_ms},
          {"total_ms", record.total_ms},
          {"logprobs", record.logprobs_status}};
}

Json thin_json(const ThinMargin& thin) {
  Json json{
      {"generation", thin.generation}, {"model", thin.model}, {"created_ms", thin.created_ms}};
  json.update(token_json(thin.token));
  return json;
}

}  // namespace fixpoint::cli
