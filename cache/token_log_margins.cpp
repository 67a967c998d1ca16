// The thinnest margins, and the report of them per model and route.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "cache/token_log_read.hpp"
#include "cache/token_log_snapshot.hpp"
#include "cache/token_log_tokens.hpp"

namespace fixpoint {
namespace {

// The n thinnest tokens lie in the n generations with the least min_margin (each of those has at
// least one token before any token of another generation, in this very order), so only their tokens
// are read.
constexpr const char* kThinInRange =
    "SELECT g.row, g.id, g.model, g.created_ms, g.min_margin, t.packed FROM"
    " (SELECT row, id, model, created_ms, min_margin FROM generations"
    "  WHERE created_ms >= ?1 AND created_ms < ?2 AND min_margin IS NOT NULL"
    "  ORDER BY min_margin, created_ms, row LIMIT ?3) g"
    " JOIN tokens t ON t.generation = g.row ORDER BY g.min_margin, g.created_ms, g.row";
constexpr const char* kThinInGeneration =
    "SELECT g.row, g.id, g.model, g.created_ms, g.min_margin, t.packed"
    " FROM generations g LEFT JOIN tokens t ON t.generation = g.row WHERE g.id = ?1";
constexpr const char* kThinOfRow =
    "SELECT g.row, g.id, g.model, g.created_ms, g.min_margin, t.packed"
    " FROM generations g JOIN tokens t ON t.generation = g.row WHERE g.row = ?1";
constexpr const char* kCounts =
    "SELECT model, route, row, created_ms, min_margin, tokens, with_margin, below_001, below_01,"
    " below_1 FROM generations WHERE created_ms >= ?1 AND created_ms < ?2"
    " AND (?3 IS NULL OR model = ?3) AND (?4 IS NULL OR route = ?4)";

// The thinnest tokens of all that were added, at most `limit`: by margin, time of the generation,
// row, choice and position.
class ThinnestTokens {
 public:
  explicit ThinnestTokens(std::size_t limit) : limit_(limit) {}

  // A row of the kThin queries. Errors: corrupt.
  Result<void> add(const sqlite::Statement& row) {
    Result<std::vector<LoggedToken>> tokens = unpack_tokens(row.bytes(5));
    if (!tokens) return tl::make_unexpected(std::move(tokens.error()));
    for (LoggedToken& token : *tokens) {
      if (!token.margin) continue;
      const Place place{*token.margin, row.integer(3), row.integer(0), token.choice,
                        token.position};
      if (found_.size() == limit_ && (limit_ == 0 || place >= found_.front().place)) continue;
      if (found_.size() == limit_) {
        std::pop_heap(found_.begin(), found_.end());
        found_.pop_back();
      }
      found_.push_back({place,
                        {std::string(row.bytes(1)), std::string(row.bytes(2)), row.integer(3),
                         std::move(token)}});
      std::push_heap(found_.begin(), found_.end());
    }
    return {};
  }

  // No token with a larger margin than the row's min_margin can come in.
  bool is_beyond(const sqlite::Statement& row) const {
    return found_.size() == limit_ &&
           (limit_ == 0 || row.real(4) > double{std::get<0>(found_.front().place)});
  }

  std::vector<ThinMargin> take() {
    std::sort_heap(found_.begin(), found_.end());
    std::vector<ThinMargin> margins;
    margins.reserve(found_.size());
    for (Found& found : found_) margins.push_back(std::move(found.margin));
    return margins;
  }

 private:
  using Place = std::tuple<float, std::int64_t, std::int64_t, std::uint32_t, std::uint32_t>;
  struct Found {
    Place place;
    ThinMargin margin;
    bool operator<(const Found& other) const { return place < other.place; }
  };

  std::size_t limit_;
  std::vector<Found> found_;  // a heap: the thickest one first
};

// A generation that may hold one of its group's examples.
using Candidate = std::tuple<double, std::int64_t, std::int64_t>;  // min_margin, created_ms, row

struct Group {
  MarginReport report;
  std::vector<Candidate> candidates;  // ascending, at most as many as there are examples

  void consider(const Candidate& candidate, std::size_t examples) {
    if (examples == 0 || (candidates.size() == examples && candidate >= candidates.back())) return;
    if (candidates.size() == examples) candidates.pop_back();
    candidates.insert(std::upper_bound(candidates.begin(), candidates.end(), candidate), candidate);
  }
};

using Groups = std::unordered_map<std::string, Group>;

Result<Groups> count_groups(sqlite::Database& database, const MarginReportQuery& query) {
  Result<sqlite::Statement> rows = database.prepare(kCounts);
  if (!rows) return tl::make_unexpected(std::move(rows.error()));
  rows->bind(1, query.filter.since_ms.value_or(INT64_MIN));
  rows->bind(2, query.filter.until_ms.value_or(INT64_MAX));
  if (query.filter.model) rows->bind_text(3, *query.filter.model);
  if (query.filter.route) rows->bind_text(4, *query.filter.route);
  Groups groups;
  std::string name;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return groups;
    name.clear();
    if (query.by_model) name += rows->bytes(0);
    name += '\0';
    if (query.by_route) name += rows->bytes(1);
    Group& group = groups[name];
    if (groups.size() > TokenLog::kMaxRows) {
      return fail(ErrorCode::invalid, "the report has more than " +
                                          std::to_string(TokenLog::kMaxRows) +
                                          " groups: ask for one model, one route or less time");
    }
    MarginReport& report = group.report;
    if (report.generations++ == 0) {
      if (query.by_model) report.model = rows->bytes(0);
      if (query.by_route) report.route = rows->bytes(1);
    }
    report.tokens += static_cast<std::uint64_t>(rows->integer(5));
    report.with_margin += static_cast<std::uint64_t>(rows->integer(6));
    for (int i = 0; i < 3; ++i) {
      report.below[i] += static_cast<std::uint64_t>(rows->integer(7 + i));
    }
    if (!rows->is_null(4)) {
      group.consider({rows->real(4), rows->integer(3), rows->integer(2)}, query.examples);
    }
  }
}

Result<void> add_examples(sqlite::Database& database, Group& group, std::size_t examples,
                          const OnDamaged& on_damaged) {
  Result<sqlite::Statement> select = database.prepare(kThinOfRow);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  ThinnestTokens thinnest(examples);
  for (const Candidate& candidate : group.candidates) {
    const sqlite::ResetAtEnd at_end(*select);
    select->bind(1, std::get<2>(candidate));
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) continue;
    if (!thinnest.add(*select)) on_damaged(std::string(select->bytes(1)));
  }
  group.report.thinnest = thinnest.take();
  return {};
}

}  // namespace

Result<std::vector<ThinMargin>> read_thin_margins(sqlite::Database& database,
                                                  const MarginQuery& query,
                                                  const OnDamaged& on_damaged) {
  Result<sqlite::Statement> select =
      database.prepare(query.generation ? kThinInGeneration : kThinInRange);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  if (query.generation) {
    select->bind_text(1, *query.generation);
  } else {
    select->bind(1, query.since_ms.value_or(INT64_MIN));
    select->bind(2, query.until_ms.value_or(INT64_MAX));
    select->bind(3, static_cast<std::int64_t>(query.limit));
  }
  ThinnestTokens thinnest(query.limit);
  for (bool first = true;; first = false) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (first && !*row && query.generation) {
      return fail(ErrorCode::not_found, "no generation has this id");
    }
    if (!*row || thinnest.is_beyond(*select)) return thinnest.take();
    if (Result<void> added = thinnest.add(*select); !added) {
      if (query.generation) return tl::make_unexpected(std::move(added.error()));
      on_damaged(std::string(select->bytes(1)));
    }
  }
}

Result<std::vector<MarginReport>> read_margin_report(sqlite::Database& database,
                                                     const MarginReportQuery& query,
                                                     const OnDamaged& on_damaged) {
  return in_snapshot(database, [&]() -> Result<std::vector<MarginReport>> {
    Result<Groups> groups = count_groups(database, query);
    if (!groups) return tl::make_unexpected(std::move(groups.error()));
    std::vector<MarginReport> reports;
    reports.reserve(groups->size());
    for (auto& [name, group] : *groups) {
      if (Result<void> added = add_examples(database, group, query.examples, on_damaged); !added) {
        return tl::make_unexpected(std::move(added.error()));
      }
      reports.push_back(std::move(group.report));
    }
    std::sort(reports.begin(), reports.end(), [](const MarginReport& a, const MarginReport& b) {
      return std::tie(b.tokens, b.generations, a.model, a.route) <
             std::tie(a.tokens, a.generations, b.model, b.route);
    });
    return reports;
  });
}

}  // namespace fixpoint
