#include "gateway/dialects/chat_chunk.hpp"

#include <ctime>
#include <utility>

#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {

Result<ChatChunk> ChunkReader::read(const SseEvent& event) {
  if (event.data == "[DONE]") {
    started_ = true;
    return ChatChunk{Json(), true};
  }
  auto parsed = parse_answer(event.data);
  if (!parsed) return fail(ErrorCode::protocol, "sent a chunk that " + parsed.error().message);
  const Json& chunk = *parsed;
  if (!chunk.is_object()) return fail(ErrorCode::protocol, "chunk: not a JSON object");
  if (event.event == "error" || has_value(chunk, "error")) {
    return fail(ErrorCode::protocol, "sent an error in its stream");
  }
  if (const Json* usage = object_member(chunk, "usage")) usage_ = *usage;
  const Json* choices = array_member(chunk, "choices");
  if (!choices || choices->empty()) return ChatChunk{};
  const Json& choice = (*choices)[0];
  const Json* index = member(choice, "index");
  if (choices->size() > 1 || (index && *index != 0)) {
    return fail(ErrorCode::protocol, "chunk: more than the one choice that was asked for");
  }
  if (!choice.is_object()) return fail(ErrorCode::protocol, "chunk: a choice is not an object");
  if (!started_) {
    id_ = text_or_empty(chunk, "id");
    model_ = text_or_empty(chunk, "model");
    const Json* created = member(chunk, "created");
    created_ =
        created && created->is_number_integer() ? created->get<std::int64_t>() : std::time(nullptr);
    started_ = true;
  }
  // Some servers send "" or null in a chunk after the one that had it.
  const std::string* reason = text_member(choice, "finish_reason");
  if (reason && !reason->empty()) finish_reason_ = *reason;
  if (has_value(choice, "stop_reason")) stop_sequence_ = choice["stop_reason"];
  return ChatChunk{choice, false};
}

}  // namespace fixpoint::dialects
