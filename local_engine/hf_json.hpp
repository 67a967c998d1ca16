// Members of the JSON files of a Hugging Face model folder, by name and type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "local_engine/result.hpp"

namespace fixpoint::engine {

// One JSON object of one file. Keeps the first error; after it, what is returned means nothing.
// Members that are null count as missing, as transformers reads them.
class HfObject {
 public:
  // `file` is how messages call it. A value that is not an object is the first error.
  HfObject(std::string file, const nlohmann::json& value);

  const nlohmann::json* find(std::string_view key) const;
  // A positive integer of at most `most`.
  std::size_t count(std::string_view key, std::size_t most,
                    std::optional<std::size_t> fallback = {});
  // A positive number of at most `most`.
  double positive(std::string_view key, double most, std::optional<double> fallback = {});
  bool boolean(std::string_view key, bool fallback);
  // Null if the member is missing.
  const std::string* text(std::string_view key);

  void bad(std::string_view key, const std::string& what);          // bad_model_file
  void unsupported(std::string_view key, const std::string& what);  // well-formed, not implemented
  // For messages: the value, cut to a line.
  static std::string shown(const nlohmann::json& value);

  std::optional<Error> error;

 private:
  std::string named(std::string_view key) const;
  std::string file_;
  const nlohmann::json& value_;
};

// The member, or null where it or the object is missing.
const nlohmann::json& hf_member(const nlohmann::json& object, std::string_view key);

// Errors: bad_model_file for text that is not JSON, is longer than `most_bytes` or is nested
// absurdly deep.
Result<nlohmann::json> parse_hf_json(const std::string& file, std::string_view text,
                                     std::size_t most_bytes);

}  // namespace fixpoint::engine
