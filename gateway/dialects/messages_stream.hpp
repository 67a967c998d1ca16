// The two forms of an answer of Anthropic's messages. Inside this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/dialects/answer_form.hpp"
#include "gateway/dialects/event_template.hpp"
#include "gateway/dialects/text_pieces.hpp"

namespace fixpoint::dialects {

// Blocks of unknown types survive, and so do deltas of unknown types: their strings and arrays are
// appended to the block's members of the same names, anything else replaces them. The answer is
// unfaithful then, unless the members were empty; so it is with a tool's input that is no JSON,
// unless a token limit has cut it.
class MessagesAssembler final : public StreamAssembler {
 public:
  Result<StreamStep> add(const SseEvent& event) override;
  Json assemble() const override;
  bool faithful() const override { return faithful_; }

 private:
  struct Block {
    Json json;
    std::string input;  // pieces of JSON so far
    bool open = true;
  };

  Result<void> start(const Json& event);
  Result<void> start_block(const Json& event);
  Result<void> change_block(const Json& event, std::string_view text);
  Result<void> stop_block(std::size_t index);
  Result<void> change_message(const Json& event);
  Result<StreamStep> stop();

  Json message_;  // without its content; null: not started
  std::vector<Block> blocks_;
  bool faithful_ = true;
  bool any_invalid_ = false;  // an input that is no JSON

  EventTemplate template_;
  std::size_t block_ = 0;    // that a matching event's piece of text belongs to
  std::string member_name_;  // in that block; "input": its pieces of JSON
};

std::vector<SseEvent> split_message(const Json& answer, Pieces size);

// An event of an Anthropic stream: named as its type.
SseEvent message_event(const Json& body);

}  // namespace fixpoint::dialects
