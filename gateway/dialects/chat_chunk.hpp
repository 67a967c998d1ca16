// Reading the chunks of a chat stream that has one choice. Inside this folder.
#pragma once

#include <string>

#include "cache/base/result.hpp"
#include "gateway/dialects/json_access.hpp"
#include "gateway/http/sse.hpp"

namespace fixpoint::dialects {

// What one event adds.
struct ChatChunk {
  Json choice;       // its only one; null: none
  bool end = false;  // [DONE]
};

// Keeps what the chunks say beside their choice. Not thread-safe.
class ChunkReader {
 public:
  // Errors: protocol, for what is no chunk, an error, or a second choice.
  Result<ChatChunk> read(const SseEvent& event);

  bool started() const { return started_; }  // a chunk with a choice came (or the end)
  const std::string& id() const { return id_; }
  const std::string& model() const { return model_; }
  std::int64_t created() const { return created_; }
  const std::string& finish_reason() const { return finish_reason_; }
  const Json& stop_sequence() const { return stop_sequence_; }  // a string where it is known
  const Json& usage() const { return usage_; }

 private:
  bool started_ = false;
  std::string id_, model_, finish_reason_;
  std::int64_t created_ = 0;
  Json usage_, stop_sequence_;
};

}  // namespace fixpoint::dialects
