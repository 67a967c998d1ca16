#include "gateway/api/token_estimate.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "cache/base/json_scanner.hpp"

namespace fixpoint {
namespace {

// An image of ordinary size: providers count from some hundred tokens to about 1,600. Documents and
// audio are not told apart from it: their length cannot be seen without decoding them.
constexpr std::uint64_t kTokensPerMedium = 1000;
// Of an answer whose request sets no limit: above what most answers have, so that a burst cannot
// pass a limit by much, and so low that a small limit still lets several requests run at once.
constexpr std::uint64_t kExpectedCompletion = 1000;
// Of any answer: agents allow 32,000 tokens with every request and take some hundred.
constexpr std::uint64_t kMostExpected = 4000;
// Of a string, to tell encoded bytes from text: no text goes on for so long without a space.
constexpr std::size_t kLook = 1024;

// Finds what is no text: data URLs wherever they are, and the members in which the APIs carry
// images, audio and files.
class MediaFinder {
 public:
  std::uint64_t media() const { return media_; }
  std::uint64_t media_bytes() const { return media_bytes_; }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number(std::string_view, bool) { return true; }
  bool key(const JsonString& name) {
    names_[depth_] = name.raw;
    return true;
  }
  bool string(const JsonString& value) {
    if (!is_medium(value.raw)) return true;
    ++media_;
    media_bytes_ += value.raw.size();
    return true;
  }
  bool start_object() { return open(); }
  bool end_object() { return close(); }
  bool start_array() { return open(); }
  bool end_array() { return close(); }

 private:
  bool open() {
    names_[++depth_] = {};
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  bool is_medium(std::string_view value) const {
    const std::string_view begin = value.substr(0, kLook);
    if (begin.find(' ') != std::string_view::npos) return false;
    if (begin.starts_with("data:") && begin.find(";base64,") != std::string_view::npos) return true;
    const std::string_view name = names_[depth_];
    const std::string_view parent = depth_ > 0 ? names_[depth_ - 1] : std::string_view();
    if (name == "url") return parent == "image_url" || parent == "source";
    if (name == "data") return parent == "source" || parent == "input_audio";
    return name == "image_url" || name == "file_data";
  }

  // Of the member that is being read, in each open container; in an array: none.
  std::array<std::string_view, JsonScanner<MediaFinder>::kMaxDepth + 1> names_;
  std::size_t depth_ = 0;
  std::uint64_t media_ = 0, media_bytes_ = 0;
};

// Nothing for what is no whole number of 64 bits.
std::optional<std::uint64_t> whole_number(const ClientRequest& request, std::string_view name) {
  const auto text = request.find(name);
  std::uint64_t value = 0;
  if (!text) return {};
  const char* const end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || at != end) return {};
  return value;
}

std::uint64_t expected_completion(const ClientRequest& request) {
  if (request.endpoint == Endpoint::embeddings || request.endpoint == Endpoint::count_tokens) {
    return 0;
  }
  std::uint64_t each = kExpectedCompletion;
  for (const char* name : {"max_completion_tokens", "max_output_tokens", "max_tokens"}) {
    if (const auto limit = whole_number(request, name)) {
      each = std::min(*limit, kMostExpected);
      break;
    }
  }
  const std::uint64_t answers =
      std::max({whole_number(request, "n").value_or(1),
                whole_number(request, "best_of").value_or(1), std::uint64_t{1}});
  return each > kMaxTokensPerAnswer / answers ? kMaxTokensPerAnswer : each * answers;
}

}  // namespace

std::uint64_t estimate_prompt_tokens(std::string_view body) {
  MediaFinder finder;
  JsonScanner<MediaFinder>(body, finder).scan();
  return (body.size() - finder.media_bytes()) / kBytesPerToken + finder.media() * kTokensPerMedium;
}

TokenCounts expected_tokens(const ClientRequest& request, std::string_view body) {
  return {.prompt = estimate_prompt_tokens(body),
          .completion = expected_completion(request),
          .cached = 0};
}

}  // namespace fixpoint
