// log margins --by | fingerprints.
#include <algorithm>
#include <iomanip>

#include "gateway/cli/log_support.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json report_json(const MarginReport& report, const MarginReportQuery& query) {
  Json json = Json::object();
  if (query.by_model) json["model"] = report.model;
  if (query.by_route) json["route"] = report.route;
  json["generations"] = report.generations;
  json["tokens"] = report.tokens;
  json["tokens_with_margin"] = report.with_margin;
  Json below = Json::array();
  for (std::size_t i = 0; i < std::size(kMarginSteps); ++i) {
    below.push_back({{"nats", kMarginSteps[i]},
                     {"tokens", report.below[i]},
                     {"share", share(report.below[i], report.with_margin)}});
  }
  json["below"] = std::move(below);
  Json thinnest = Json::array();
  for (const ThinMargin& thin : report.thinnest) thinnest.push_back(thin_json(thin));
  json["thinnest"] = std::move(thinnest);
  return json;
}

void write_report(std::ostream& out, const MarginReport& report, const MarginReportQuery& query) {
  const auto cell = [&](int width, const std::string& text) {
    out << std::right << std::setw(width) << text;
  };
  cell(11, std::to_string(report.generations));
  cell(12, std::to_string(report.tokens));
  cell(13, std::to_string(report.with_margin));
  for (const std::uint64_t below : report.below) {
    cell(10,
         report.with_margin == 0 ? "-" : fixed(100 * share(below, report.with_margin), 2) + "%");
  }
  out << "  ";
  if (query.by_model) out << safe_text(report.model);
  if (query.by_model && query.by_route) out << " | ";
  if (query.by_route) out << safe_text(report.route);
  out << '\n';
  for (const ThinMargin& thin : report.thinnest)
    out << "             " << margin_line(thin) << '\n';
}

}  // namespace

int log_margin_report(const Session& session, const MarginArguments& arguments) {
  if (arguments.generation) {
    return report(session, {ErrorCode::invalid, "log margins takes an ID or --by, not both"});
  }
  MarginReportQuery query;
  const auto is_by = [&](const char* name) {
    return std::find(arguments.by.begin(), arguments.by.end(), name) != arguments.by.end();
  };
  query.by_model = is_by("model");
  query.by_route = is_by("route");
  query.examples = arguments.examples;
  query.filter.model = arguments.model;
  query.filter.route = arguments.route;
  const auto since = moment(arguments.since, "--since");
  if (!since) return report(session, since.error());
  const auto until = moment(arguments.until, "--until");
  if (!until) return report(session, until.error());
  query.filter.since_ms = *since;
  query.filter.until_ms = *until;
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  LeftOut left_out(session);
  const auto log = open_log(config->log.path, left_out.listener());
  if (!log) return report_failure(session, log.error());
  const auto reports = (*log)->margin_report(query);
  if (!reports) return report_failure(session, reports.error());
  if (session.json) {
    Json list = Json::array();
    for (const MarginReport& one : *reports) list.push_back(report_json(one, query));
    write_json(session, list);
    return left_out.finish();
  }
  session.context.out << "generations      tokens  with margin   < 0.01     < 0.1     < 1.0  "
                      << (query.by_model && query.by_route ? "model | route"
                          : query.by_model                 ? "model"
                                                           : "route")
                      << '\n';
  for (const MarginReport& one : *reports) write_report(session.context.out, one, query);
  return left_out.finish();
}

int log_fingerprints(const Session& session) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto log = open_log(config->log.path);
  if (!log) return report_failure(session, log.error());
  const auto seen = (*log)->fingerprints();
  if (!seen) return report_failure(session, seen.error());
  const auto is_change = [&](std::size_t i) {
    return i > 0 && (*seen)[i].provider == (*seen)[i - 1].provider &&
           (*seen)[i].model == (*seen)[i - 1].model;
  };
  if (session.json) {
    Json list = Json::array();
    for (std::size_t i = 0; i < seen->size(); ++i) {
      const SeenFingerprint& one = (*seen)[i];
      list.push_back(
          {{"provider", one.provider},
           {"model", one.model},
           {"fingerprint", one.fingerprint},
           {"first_seen_ms", one.first_seen_ms},
           {"last_seen_ms", one.last_seen_ms},
           {"generations", one.generations},
           {"changed_from", is_change(i) ? Json((*seen)[i - 1].fingerprint) : Json(nullptr)}});
    }
    write_json(session, list);
    return kExitOk;
  }
  std::ostream& out = session.context.out;
  for (std::size_t i = 0; i < seen->size(); ++i) {
    const SeenFingerprint& one = (*seen)[i];
    if (!is_change(i)) {
      out << safe_text(one.model) << " of " << safe_text(one.provider) << '\n';
    }
    out << (is_change(i) ? "  changed " : "  first   ") << format_time(one.first_seen_ms)
        << "  last " << format_time(one.last_seen_ms) << "  " << std::right << std::setw(9)
        << one.generations << " generations  " << safe_text(one.fingerprint) << '\n';
  }
  return kExitOk;
}

}  // namespace fixpoint::cli
