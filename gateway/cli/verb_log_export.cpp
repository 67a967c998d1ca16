// log export.
#include <charconv>
#include <cmath>

#include "gateway/cli/log_support.hpp"

namespace fixpoint::cli {
namespace {

// RFC 4180 rows. Text that a spreadsheet would take for a formula gets an apostrophe in front
// (OWASP's advice on CSV injection): models and errors come from peers. Columns that are JSON begin
// with a quote or a bracket and need none; numbers are left alone.
class CsvRow {
 public:
  void text(std::string_view value) {
    const bool formula =
        !value.empty() && std::string_view("=+-@\t\r\n").find(value[0]) != std::string_view::npos;
    quoted((formula ? "'" : "") + std::string(value));
  }
  void json(const Json& value) {
    quoted(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  template <class Number>
  void number(Number value) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    separate();
    row_.append(digits, end);
  }
  void real(double value) { std::isnan(value) ? separate() : number(value); }
  void real(float value) { std::isnan(value) ? separate() : number(value); }
  template <class Number>
  void optional(const std::optional<Number>& value) {
    value ? number(*value) : separate();
  }
  void hex(std::string_view bytes) {
    separate();
    for (const char c : bytes) {
      for (const int shift : {4, 0}) row_ += "0123456789abcdef"[(c >> shift) & 15];
    }
  }
  void end(std::ostream& out) {
    out << row_ << "\r\n";
    row_.clear();
    first_ = true;
  }

 private:
  void separate() {
    if (!first_) row_ += ',';
    first_ = false;
  }
  void quoted(std::string_view value) {
    separate();
    if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
      row_ += value;
      return;
    }
    row_ += '"';
    for (const char c : value) row_.append(c == '"' ? 2 : 1, c);
    row_ += '"';
  }

  std::string row_;
  bool first_ = true;
};

constexpr const char* kGenerationColumns =
    "id,created_ms,key,prompt_hash,endpoint,model,requested_model,provider,route,fingerprint,"
    "tenant,finish_reason,sample,prompt_tokens,completion_tokens,cached_tokens,cost_microdollars,"
    "attempts,queue_ms,first_token_ms,total_ms,logprobs\r\n";
constexpr const char* kTokenColumns =
    "generation,created_ms,model,route,choice,position,token_id,token,bytes_hex,logprob,margin,"
    "redacted,alternatives\r\n";

void write_generation(std::ostream& out, const GenerationRecord& record) {
  CsvRow row;
  row.text(record.id);
  row.number(record.created_ms);
  for (const std::string* text : {&record.key, &record.prompt_hash, &record.endpoint, &record.model,
                                  &record.requested_model, &record.provider, &record.route,
                                  &record.fingerprint, &record.tenant, &record.finish_reason}) {
    row.text(*text);
  }
  row.number(record.sample);
  row.number(record.prompt_tokens);
  row.number(record.completion_tokens);
  row.number(record.cached_tokens);
  row.optional(record.cost_microdollars);
  row.number(record.attempts);
  row.real(record.queue_ms);
  row.real(record.first_token_ms);
  row.real(record.total_ms);
  row.text(record.logprobs_status);
  row.end(out);
}

void write_tokens(std::ostream& out, const GenerationRecord& record) {
  CsvRow row;
  for (const LoggedToken& token : record.tokens) {
    row.text(record.id);
    row.number(record.created_ms);
    row.text(record.model);
    row.text(record.route);
    row.number(token.choice);
    row.number(token.position);
    row.optional(token.id);
    row.json(token.bytes);
    row.hex(token.bytes);
    row.real(token.logprob);
    row.optional(token.margin);
    row.text(token.redacted ? "true" : "false");
    Json alternatives = Json::array();
    for (const LoggedAlternative& alternative : token.top) {
      alternatives.push_back({{"token", alternative.bytes}, {"logprob", alternative.logprob}});
    }
    row.json(alternatives);
    row.end(out);
  }
}

void write_line(std::ostream& out, const GenerationRecord& record, bool with_tokens) {
  Json json = record_json(record);
  if (with_tokens) {
    Json tokens = Json::array();
    for (const LoggedToken& token : record.tokens) tokens.push_back(token_json(token));
    json["tokens"] = std::move(tokens);
  }
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

int log_export(const Session& session, const ExportArguments& arguments) {
  GenerationFilter filter;
  filter.model = arguments.model;
  filter.route = arguments.route;
  const auto since = moment(arguments.since, "--since");
  if (!since) return report(session, since.error());
  const auto until = moment(arguments.until, "--until");
  if (!until) return report(session, until.error());
  filter.since_ms = *since;
  filter.until_ms = *until;
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  LeftOut left_out(session);
  const auto log = open_log(config->log.path, left_out.listener());
  if (!log) return report_failure(session, log.error());

  std::ostream& out = session.context.out;
  const bool csv = arguments.format == "csv";
  if (csv) out << (arguments.tokens ? kTokenColumns : kGenerationColumns);
  const auto walked =
      (*log)->for_each(filter, arguments.tokens, [&](const GenerationRecord& record) {
        if (!csv) {
          write_line(out, record, arguments.tokens);
        } else if (arguments.tokens) {
          write_tokens(out, record);
        } else {
          write_generation(out, record);
        }
        return out.good();  // what reads may have gone
      });
  if (!walked) return report_failure(session, walked.error());
  return left_out.finish();
}

}  // namespace fixpoint::cli
