// From tokens to text that may be shown: whole UTF-8 characters, cut before a stop string.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::engine {

// Feeds on token bytes; gives out text only when no later byte can change it: a character is
// complete, and no suffix could still grow into a stop string. One generation, one thread.
//
// The stop string that is complete first ends the text, and of two that end at the same byte the
// longer one: what is shown depends on the bytes alone, not on how tokens cut them. Bytes that are
// no UTF-8 show as U+FFFD, one per longest broken start of a character, as browsers decode.
class TextStream {
 public:
  // Precondition: no stop string is empty.
  explicit TextStream(std::vector<std::string> stops);

  // Appends one token's bytes (none for a token that is never shown). Returns the text that became
  // safe to show (often empty).
  std::string push(std::string_view token_bytes);
  // Ends the stream: what was held back. Bytes that never became a character show as U+FFFD.
  std::string finish();

  // A stop string was completed: nothing after it is shown, and push() gives nothing more.
  bool stopped() const { return !stopped_by_.empty(); }
  const std::string& stopped_by() const { return stopped_by_; }
  // Tokens pushed so far whose text is shown at least in part. Tokens held back or cut do not
  // count; a token without bytes counts once all before it are shown in full.
  std::size_t tokens_shown() const { return shown_; }

 private:
  // Decodes held_[0, end) into text and drops it; `final`: no byte can follow.
  std::string show(std::size_t end, bool final);
  // Counts tokens as shown that own the first `bytes` held bytes.
  void count_shown(std::size_t bytes);

  std::vector<std::string> stops_;
  std::string held_;                    // bytes not shown yet
  std::deque<std::size_t> held_sizes_;  // their tokens, how many of these bytes each owns
  bool front_counted_ = false;          // the first of them was shown in part and counted
  std::size_t shown_ = 0;
  std::string stopped_by_;  // empty: nothing has
};

}  // namespace fixpoint::engine
