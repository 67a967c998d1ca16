// The two forms of an answer of OpenAI's chat/completions and completions. Inside this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/dialects/answer_form.hpp"
#include "gateway/dialects/event_template.hpp"
#include "gateway/dialects/text_pieces.hpp"

namespace fixpoint::dialects {

// Unknown members survive: strings of a delta are joined where they are text, arrays with indices
// are merged by index, other arrays grow, other values are replaced. A replacement that loses
// something makes the answer unfaithful; so does half of a surrogate pair.
class ChatAssembler final : public StreamAssembler {
 public:
  explicit ChatAssembler(Endpoint endpoint) : endpoint_(endpoint) {}
  Result<StreamStep> add(const SseEvent& event) override;
  Json assemble() const override;
  bool faithful() const override { return faithful_; }

 private:
  Result<void> merge_choice(const Json& choice);
  Result<void> merge_value(std::string_view name, Json& into, const Json& value);
  Result<void> merge_delta(Json& into, const Json& delta);
  void learn(std::string_view text, const Json& chunk);
  std::string* repeated_target();

  Endpoint endpoint_;
  Json answer_ = Json::object();  // top-level members
  std::vector<Json> choices_;     // by index, in the plain form; null: not seen
  bool faithful_ = true;

  // Where the piece of text of an event goes that matches the template.
  EventTemplate template_;
  std::size_t choice_ = 0;
  std::string name_;  // of the message's member; "tool_calls": arguments of the call below
  std::size_t call_index_ = 0;  // as the chunks count
  Json call_type_;              // null: they do not say
};

// "[DONE]" included.
std::vector<SseEvent> split_chat(Endpoint endpoint, const Json& answer, bool include_usage,
                                 Pieces size);
bool is_chat_usage_chunk(std::string_view data);

}  // namespace fixpoint::dialects
