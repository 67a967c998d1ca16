#include "local_engine/text/text_stream.hpp"

#include <algorithm>
#include <utility>

namespace fixpoint::engine {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

enum class Form { valid, broken, unfinished };

struct Character {
  Form form;
  std::size_t size;  // of the character, or of its longest start that could have been one
};

// The character at the start of `text`, which is not empty. The ranges are Unicode's table 3-7.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {Form::valid, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Form::broken, 1};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Form::unfinished, i};
    unsigned char low = 0x80, high = 0xBF;
    if (i == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return {Form::broken, i};
  }
  return {Form::valid, size};
}

// Length of the longest suffix of `text` that is a proper start of `stop`.
std::size_t growing_suffix(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string TextStream::push(std::string_view token_bytes) {
  if (stopped()) return {};
  held_ += token_bytes;
  held_sizes_.push_back(token_bytes.size());

  const std::string* first = nullptr;
  std::size_t first_end = std::string::npos, first_start = std::string::npos, growing = 0;
  for (const std::string& stop : stops_) {
    const std::size_t start = held_.find(stop);
    if (start == std::string::npos) {
      growing = std::max(growing, growing_suffix(held_, stop));
      continue;
    }
    const std::size_t end = start + stop.size();
    if (end < first_end || (end == first_end && start < first_start)) {
      first_end = end;
      first_start = start;
      first = &stop;
    }
  }
  if (!first) return show(held_.size() - growing, false);

  std::string text = show(first_start, true);
  stopped_by_ = *first;
  held_.clear();
  held_sizes_.clear();
  return text;
}

std::string TextStream::finish() {
  return stopped() ? std::string() : show(held_.size(), true);
}

std::string TextStream::show(std::size_t end, bool final) {
  std::string text;
  std::size_t at = 0;
  while (at < end) {
    // When the text ends here, what stands behind `end` (a stop string) is not part of a character.
    const auto rest = std::string_view(held_).substr(0, final ? end : held_.size()).substr(at);
    const Character next = first_character(rest);
    if (next.form == Form::unfinished && !final) break;
    if (at + next.size > end) break;
    if (next.form == Form::valid) {
      text += rest.substr(0, next.size);
    } else {
      text += kReplacement;
    }
    at += next.size;
  }
  count_shown(at);
  held_.erase(0, at);
  return text;
}

void TextStream::count_shown(std::size_t bytes) {
  while (!held_sizes_.empty() && held_sizes_.front() <= bytes) {
    bytes -= held_sizes_.front();
    held_sizes_.pop_front();
    if (!std::exchange(front_counted_, false)) ++shown_;
  }
  if (bytes > 0) {
    held_sizes_.front() -= bytes;
    if (!std::exchange(front_counted_, true)) ++shown_;
  }
}

}  // namespace fixpoint::engine
