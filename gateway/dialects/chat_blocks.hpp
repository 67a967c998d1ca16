// The deltas of a chat stream as blocks, one after the other: what the other APIs' streams consist
// of. Inside this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "gateway/dialects/json_access.hpp"

namespace fixpoint::dialects {

enum class BlockKind { reasoning, text, refusal, call };

struct BlockStart {
  BlockKind kind = BlockKind::text;
  std::string call_id, name;  // of a call
};

class BlockWriter {
 public:
  virtual ~BlockWriter() = default;
  virtual void begin(const BlockStart& start) = 0;
  // Of the block that began last; logprobs: an array of entries, or null.
  virtual void append(std::string_view piece, const Json* logprobs) = 0;
  virtual void end() = 0;
};

// A chunk may go on with any of the tool calls, or with the text, at any time; blocks follow each
// other. What belongs to a later block waits until the call before it has its last brace (or until
// the finish), so nothing waits in a stream that makes its calls one by one. Not thread-safe.
class ChatBlocks {
 public:
  explicit ChatBlocks(BlockWriter& writer) : writer_(writer) {}
  // One choice of a chunk. Errors: protocol, for deltas that have no counterpart.
  Result<void> add(const Json& choice);
  void finish();
  bool any_call() const { return any_call_; }
  bool any_refusal() const { return any_refusal_; }

 private:
  // Sees the end of a JSON object that arrives in pieces.
  struct ObjectEnd {
    std::size_t depth = 0;
    bool in_string = false, escaped = false, done = false;
    void feed(std::string_view piece);
  };
  struct Block {
    BlockStart start;
    std::size_t call = 0;  // its index in the chunks
    std::string waiting;
    Json waiting_logprobs = Json::array();
    ObjectEnd arguments;
  };

  Result<void> text(BlockKind kind, const std::string& piece, const Json* logprobs);
  Result<void> call(const Json& delta);
  Result<Block*> make(BlockStart start);
  void put(Block& block, std::string_view piece, const Json* logprobs);
  void open_next();

  BlockWriter& writer_;
  std::vector<Block> blocks_;  // in order of their first deltas
  std::size_t begun_ = 0;      // how many have begun; all but the last of these have ended
  bool any_call_ = false, any_refusal_ = false;
  std::string_view reasoning_name_;  // under which its text comes; empty: none came
};

}  // namespace fixpoint::dialects
