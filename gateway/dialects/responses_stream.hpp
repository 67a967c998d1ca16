// The two forms of an answer of OpenAI's responses. Inside this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dialects/answer_form.hpp"
#include "gateway/dialects/event_template.hpp"

namespace fixpoint::dialects {

// The last event carries the whole answer; until then it is what the events so far have said.
class ResponsesAssembler final : public StreamAssembler {
 public:
  Result<StreamStep> add(const SseEvent& event) override;
  Json assemble() const override;
  bool faithful() const override;

 private:
  Result<Json*> item_of(const Json& event);
  Result<void> change_item(const std::string& type, const Json& event, std::string_view text);
  Result<StreamStep> finish(const Json& event);
  std::string* delta_target(const Json& event, std::string_view type);
  bool has_own_output() const;

  Json response_;            // without its output; null: not started
  std::vector<Json> items_;  // by output index
  std::vector<bool> done_;   // of the same: the whole item was sent
  bool ended_ = false;
  bool exact_ = true;  // nothing that the answer is made of has half a surrogate pair

  EventTemplate template_;
  Json repeated_;              // the event that the template was learned from
  std::string repeated_type_;  // its type
};

// Writes the events of one stream: their names, order, numbers and indices. An item is added,
// filled and done before the next one. Not thread-safe.
class ResponseEvents {
 public:
  // `response` is in progress: its output is empty.
  void created(const Json& response);
  void item_added(const Json& item);
  void part_added(const Json& part);
  void text_delta(std::string_view piece, const Json* logprobs);  // logprobs: array or null
  void refusal_delta(std::string_view piece);
  void reasoning_delta(std::string_view piece);
  void arguments_delta(std::string_view piece);
  void part_done(const Json& part);  // with the done event of its text
  void item_done(const Json& item);  // with the done event of its arguments or input
  // The whole item at once, from its added to its done event.
  void item(const Json& item);
  // response.completed, response.incomplete or response.failed, by its status.
  void finished(const Json& response);

  std::vector<SseEvent> take();  // what was written since the last call

 private:
  void add(const char* type, Json members);
  void part_event(const char* type, Json members);  // with item_id and the two indices
  void message_parts(const Json& item);
  void reasoning_parts(const Json& item);
  void input_delta(std::string_view piece);

  std::vector<SseEvent> events_;
  std::uint64_t sequence_ = 0;
  std::size_t output_index_ = 0, part_index_ = 0;
  std::string item_id_;
};

std::vector<SseEvent> split_response(const Json& answer);

}  // namespace fixpoint::dialects
