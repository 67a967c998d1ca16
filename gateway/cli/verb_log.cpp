// log tail | show | margins.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iomanip>

#include "cache/token_log.hpp"
#include "gateway/cli/output.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

// Below this margin the runner-up had more than 60 % of the chosen token's probability (e^-0.5 =
// 0.61): another machine's rounding or a small change of the prompt may turn it.
constexpr float kThinNats = 0.5F;
constexpr std::size_t kShownAlternatives = 4;

Result<std::unique_ptr<TokenLog>> open_log(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    return fail(ErrorCode::not_found, "there is no token log at " + path + " yet");
  }
  TokenLogOptions options;
  options.path = path;
  options.read_only = true;
  return TokenLog::open(options);
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

bool is_thin(const LoggedToken& token) {
  return token.margin && *token.margin < kThinNats;
}

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

Json token_json(const LoggedToken& token) {
  Json json{{"choice", token.choice}, {"position", token.position}, {"id", or_null(token.id)}};
  add_text(json, token.bytes);
  json["logprob"] = token.logprob;
  json["margin"] = or_null(token.margin);
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
          {"finish_reason", record.finish_reason},
          {"sample", record.sample},
          {"prompt_tokens", record.prompt_tokens},
          {"completion_tokens", record.completion_tokens},
          {"queue_ms", record.queue_ms},
          {"first_token_ms", record.first_token_ms},
          {"total_ms", record.total_ms},
          {"logprobs", record.logprobs_status}};
}

std::string alternatives_text(const LoggedToken& token) {
  std::string text;
  const std::size_t shown = std::min(token.top.size(), kShownAlternatives);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += "  ";
    text += in_quotes(token.top[i].bytes) + " " + percent(token.top[i].logprob);
  }
  return text;
}

void write_record(std::ostream& out, const GenerationRecord& record) {
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) out << std::left << std::setw(13) << name << safe_text(value) << '\n';
  };
  line("generation", record.id);
  line("time", format_time(record.created_ms));
  line("model", record.model);
  if (record.requested_model != record.model) line("requested", record.requested_model);
  line("provider", record.provider);
  line("route", record.route);
  line("endpoint", record.endpoint);
  line("key", record.key);
  line("prompt hash", record.prompt_hash);
  line("fingerprint", record.fingerprint);
  line("sample", std::to_string(record.sample));
  line("finish", record.finish_reason);
  line("tokens", std::to_string(record.prompt_tokens) + " prompt, " +
                     std::to_string(record.completion_tokens) + " completion");
  line("milliseconds", fixed(record.queue_ms, 1) + " queued, " + fixed(record.first_token_ms, 1) +
                           " to the first token, " + fixed(record.total_ms, 1) + " in all");
  line("logprobs", record.logprobs_status);
}

void write_tokens(std::ostream& out, const std::vector<LoggedToken>& tokens) {
  std::size_t thin = 0;
  std::optional<std::uint32_t> choice;
  for (const LoggedToken& token : tokens) {
    if (choice != token.choice) {
      choice = token.choice;
      out << "\nchoice " << token.choice << '\n'
          << "  position    logprob     prob      margin  token | alternatives\n";
    }
    const bool marked = is_thin(token);
    thin += marked ? 1 : 0;
    out << std::right << std::setw(10) << token.position << ' ' << std::setw(10)
        << fixed(token.logprob, 4) << ' ' << std::setw(8) << percent(token.logprob) << ' '
        << std::setw(11) << (token.margin ? fixed(*token.margin, 4) : "-") << (marked ? "* " : "  ")
        << in_quotes(token.bytes) << " | " << alternatives_text(token) << '\n';
  }
  if (!tokens.empty()) {
    out << '\n'
        << thin << " of " << tokens.size() << " tokens have a margin below " << fixed(kThinNats, 1)
        << " nats (*)\n";
  }
}

// --since or --until.
Result<std::optional<std::int64_t>> moment(const std::optional<std::string>& text,
                                           const std::string& option) {
  if (!text) return std::nullopt;
  const auto parsed = parse_moment(*text, now_ms());
  if (!parsed) return fail(parsed.error().code, option + ": " + parsed.error().message);
  return *parsed;
}

void write_margins(std::ostream& out, const std::vector<ThinMargin>& margins) {
  out << "    margin  token | the two likeliest | where\n";
  for (const ThinMargin& thin : margins) {
    const LoggedToken& token = thin.token;
    out << std::right << std::setw(10) << (token.margin ? fixed(*token.margin, 4) : "-") << "  "
        << in_quotes(token.bytes) << " | ";
    for (std::size_t i = 0; i < std::min<std::size_t>(2, token.top.size()); ++i) {
      out << (i > 0 ? " / " : "") << in_quotes(token.top[i].bytes) << ' '
          << percent(token.top[i].logprob);
    }
    out << " | choice " << token.choice << " position " << token.position << " of "
        << safe_text(thin.generation) << " (" << safe_text(thin.model) << ", "
        << format_time(thin.created_ms) << ")\n";
  }
}

}  // namespace

int log_tail(const Session& session, std::size_t limit) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto log = open_log(config->log.path);
  if (!log) return report_failure(session, log.error());
  const auto records = (*log)->tail(limit);
  if (!records) return report_failure(session, records.error());
  if (session.json) {
    Json list = Json::array();
    for (const GenerationRecord& record : *records) list.push_back(record_json(record));
    write_json(session, list);
    return kExitOk;
  }
  for (const GenerationRecord& record : *records) {
    session.context.out << format_time(record.created_ms) << "  " << safe_text(record.id) << "  "
                        << safe_text(record.model) << "  " << record.prompt_tokens << "+"
                        << record.completion_tokens << " tokens  " << fixed(record.total_ms, 0)
                        << " ms  " << safe_text(record.finish_reason) << '\n';
  }
  return kExitOk;
}

int log_show(const Session& session, const std::string& id) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto log = open_log(config->log.path);
  if (!log) return report_failure(session, log.error());
  const auto record = (*log)->show(id);
  if (!record) return report_failure(session, record.error());
  if (session.json) {
    Json json = record_json(*record);
    Json tokens = Json::array();
    for (const LoggedToken& token : record->tokens) tokens.push_back(token_json(token));
    json["tokens"] = std::move(tokens);
    write_json(session, json);
    return kExitOk;
  }
  write_record(session.context.out, *record);
  write_tokens(session.context.out, record->tokens);
  return kExitOk;
}

int log_margins(const Session& session, const MarginArguments& arguments) {
  MarginQuery query;
  query.generation = arguments.generation;
  query.limit = arguments.limit;
  const auto since = moment(arguments.since, "--since");
  if (!since) return report(session, since.error());
  const auto until = moment(arguments.until, "--until");
  if (!until) return report(session, until.error());
  query.since_ms = *since;
  query.until_ms = *until;
  if (query.generation && (query.since_ms || query.until_ms)) {
    return report(session,
                  {ErrorCode::invalid, "log margins takes an ID or a time range, not both"});
  }
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto log = open_log(config->log.path);
  if (!log) return report_failure(session, log.error());
  const auto margins = (*log)->thin_margins(query);
  if (!margins) return report_failure(session, margins.error());
  if (session.json) {
    Json list = Json::array();
    for (const ThinMargin& thin : *margins) {
      Json one{
          {"generation", thin.generation}, {"model", thin.model}, {"created_ms", thin.created_ms}};
      one.update(token_json(thin.token));
      list.push_back(std::move(one));
    }
    write_json(session, list);
    return kExitOk;
  }
  write_margins(session.context.out, *margins);
  return kExitOk;
}

}  // namespace fixpoint::cli
