// Any bytes, cut at any places: the parser never breaks, and where they are cut changes nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http/sse.hpp"

namespace {

using Events = std::vector<fixpoint::SseEvent>;

constexpr std::size_t kLimit = 4096;

bool same(const Events& a, const Events& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].event != b[i].event || a[i].data != b[i].data) return false;
  }
  return true;
}

}  // namespace

// The first byte says how long the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = 1 + data[0] % 16;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fixpoint::SseParser whole(kLimit);
  Events at_once;
  const bool ok = whole.feed(text, at_once).has_value();
  fixpoint::SseParser parts(kLimit);
  Events piecewise;
  bool pieces_ok = true;
  for (std::size_t at = 0; at < text.size() && pieces_ok; at += step) {
    pieces_ok = parts.feed(text.substr(at, step), piecewise).has_value();
  }
  if (ok != pieces_ok || !same(at_once, piecewise)) std::abort();
  if (ok && whole.mid_event() != parts.mid_event()) std::abort();
  // What was parsed can be written and parsed again.
  std::string wire;
  for (const fixpoint::SseEvent& event : at_once) {
    fixpoint::append_sse(wire, event.data, event.event);
  }
  fixpoint::SseParser again(2 * kLimit);
  Events second;
  if (!again.feed(wire, second) || !same(at_once, second)) std::abort();
  return 0;
}
