// log tail | show | margins.
#include <algorithm>
#include <iomanip>

#include "gateway/cli/log_support.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

// Below this margin the runner-up had more than 60 % of the chosen token's probability (e^-0.5 =
// 0.61): another machine's rounding or a small change of the prompt may turn it.
constexpr float kThinNats = 0.5F;
constexpr std::size_t kShownAlternatives = 4;

bool is_thin(const LoggedToken& token) {
  return token.margin && *token.margin < kThinNats;
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
  line("tenant", record.tenant);
  line("sample", std::to_string(record.sample));
  line("finish", record.finish_reason);
  line("tokens",
       std::to_string(record.prompt_tokens) + " prompt, " +
           (record.cached_tokens > 0 ? std::to_string(record.cached_tokens) + " of them cached, "
                                     : "") +
           std::to_string(record.completion_tokens) + " completion");
  if (record.cost_microdollars) {
    line("cost", "$" + fixed(static_cast<double>(*record.cost_microdollars) / 1e6, 6));
  }
  if (record.attempts > 1) line("attempts", std::to_string(record.attempts));
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
        << token_text(token) << " | " << alternatives_text(token) << '\n';
  }
  if (!tokens.empty()) {
    out << '\n'
        << thin << " of " << tokens.size() << " tokens have a margin below " << fixed(kThinNats, 1)
        << " nats (*)\n";
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
  if (!arguments.by.empty()) return log_margin_report(session, arguments);
  if (arguments.model || arguments.route) {
    return report(session, {ErrorCode::invalid, "log margins takes --model and --route with --by"});
  }
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
  LeftOut left_out(session);
  const auto log = open_log(config->log.path, left_out.listener());
  if (!log) return report_failure(session, log.error());
  const auto margins = (*log)->thin_margins(query);
  if (!margins) return report_failure(session, margins.error());
  if (session.json) {
    Json list = Json::array();
    for (const ThinMargin& thin : *margins) list.push_back(thin_json(thin));
    write_json(session, list);
    return left_out.finish();
  }
  session.context.out << "    margin  token | the two likeliest | where\n";
  for (const ThinMargin& thin : *margins) {
    session.context.out << "    " << margin_line(thin) << '\n';
  }
  return left_out.finish();
}

}  // namespace fixpoint::cli
