#include "local_engine/hf_json.hpp"

namespace fixpoint::engine {

using Json = nlohmann::json;

namespace {
constexpr int kMaxDepth = 64;  // real files have under ten levels
}  // namespace

HfObject::HfObject(std::string file, const Json& value) : file_(std::move(file)), value_(value) {
  if (!value.is_object()) {
    error = Error{ErrorCode::bad_model_file, file_ + " must be a JSON object", {}};
  }
}

const Json& hf_member(const Json& object, std::string_view key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string HfObject::named(std::string_view key) const {
  return file_ + ": \"" + std::string(key) + "\" ";
}

const Json* HfObject::find(std::string_view key) const {
  const Json& value = hf_member(value_, key);
  return value.is_null() ? nullptr : &value;
}

std::size_t HfObject::count(std::string_view key, std::size_t most,
                            std::optional<std::size_t> fallback) {
  const Json* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value) return bad(key, "is missing"), 0;
  if (!value->is_number_unsigned() || *value == 0U || value->get<std::uint64_t>() > most) {
    return bad(key, "is " + shown(*value) + "; it must be 1 to " + std::to_string(most)), 0;
  }
  return value->get<std::size_t>();
}

double HfObject::positive(std::string_view key, double most, std::optional<double> fallback) {
  const Json* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value) return bad(key, "is missing"), 0;
  const double number = value->is_number() ? value->get<double>() : 0;
  if (!(number > 0) || number > most) {
    return bad(key, "is " + shown(*value) + "; it must be a positive number of at most " +
                        std::to_string(most)),
           0;
  }
  return number;
}

bool HfObject::boolean(std::string_view key, bool fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) return bad(key, "must be true or false"), fallback;
  return value->get<bool>();
}

const std::string* HfObject::text(std::string_view key) {
  const Json* value = find(key);
  if (!value) return nullptr;
  if (!value->is_string()) return bad(key, "must be a text"), nullptr;
  return value->get_ptr<const std::string*>();
}

void HfObject::bad(std::string_view key, const std::string& what) {
  if (!error) error = Error{ErrorCode::bad_model_file, named(key) + what, {}};
}

void HfObject::unsupported(std::string_view key, const std::string& what) {
  if (!error) error = Error{ErrorCode::unsupported, named(key) + what, {}};
}

std::string HfObject::shown(const Json& value) {
  constexpr std::size_t kMax = 100;
  if (value.is_structured() && value.size() > 8) {
    return "a " + std::string(value.type_name()) + " of " + std::to_string(value.size());
  }
  std::string text = value.dump(-1, ' ', true);  // ASCII, so that it may be cut anywhere
  if (text.size() > kMax) text = text.substr(0, kMax) + "...";
  return text;
}

Result<Json> parse_hf_json(const std::string& file, std::string_view text, std::size_t most_bytes) {
  if (text.size() > most_bytes) {
    return fail(ErrorCode::bad_model_file, file + " has " + std::to_string(text.size()) +
                                               " bytes; the limit is " +
                                               std::to_string(most_bytes));
  }
  bool too_deep = false;  // comparing and printing values recurse
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  Json value = Json::parse(text, keep, false);
  if (too_deep) {
    return fail(ErrorCode::bad_model_file, file + " is nested deeper than the limit of " +
                                               std::to_string(kMaxDepth) + " levels");
  }
  if (value.is_discarded()) return fail(ErrorCode::bad_model_file, file + " is not JSON");
  return value;
}

}  // namespace fixpoint::engine
