#include "gateway/http/types.hpp"

#include <algorithm>

namespace fixpoint {
namespace {

// ASCII only: header names never depend on the locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// What SDKs and providers send: growing to it would take five allocations.
constexpr std::size_t kUsualFields = 16;

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

void Headers::add(std::string name, std::string value) {
  if (fields_.capacity() == 0) fields_.reserve(kUsualFields);
  fields_.push_back(Header{std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  remove(name);
  add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [name](const Header& h) { return equal_ignoring_case(h.name, name); });
}

const std::string* Headers::find(std::string_view name) const {
  for (const Header& h : fields_) {
    if (equal_ignoring_case(h.name, name)) return &h.value;
  }
  return nullptr;
}

std::size_t Headers::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(fields_.begin(), fields_.end(), [name](auto& h) {
    return equal_ignoring_case(h.name, name);
  }));
}

}  // namespace fixpoint
