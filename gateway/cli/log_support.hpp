// What the verbs of `fixpoint log` share. Internal to gateway/cli.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cache/token_log.hpp"
#include "gateway/cli/output.hpp"

namespace fixpoint::cli {

// For reading. Errors: not_found before the first generation was logged.
Result<std::unique_ptr<TokenLog>> open_log(const std::string& path,
                                           std::function<void(const std::string&)> on_damaged = {});

// Generations that a query leaves out because their tokens are damaged.
class LeftOut {
 public:
  explicit LeftOut(const Session& session) : session_(session) {}
  // Names each; for open_log(). This object outlives the log.
  std::function<void(const std::string&)> listener();
  // For the end: says how many they were. Returns the verb's exit code.
  int finish() const;

 private:
  const Session& session_;
  std::uint64_t count_ = 0;
};

// The value of a time option such as --since; nothing when it is not given. Errors: invalid.
Result<std::optional<std::int64_t>> moment(const std::optional<std::string>& text,
                                           const std::string& option);

std::string fixed(double value, int digits);
std::string percent(float logprob);             // the probability: "41.00%"
std::string in_quotes(std::string_view bytes);  // safe for a terminal

// In quotes, or "(redacted)". A token that is redacted for an alternative's sake keeps its text.
std::string token_text(const LoggedToken& token);

// "0.0247  " the" | " the" 41.00% / " a" 40.00% | choice 0 position 3 of gen-... (model, time)"
std::string margin_line(const ThinMargin& thin);

Json record_json(const GenerationRecord& record);  // without its tokens
Json token_json(const LoggedToken& token);
Json thin_json(const ThinMargin& thin);

}  // namespace fixpoint::cli
