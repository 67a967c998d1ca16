#include "gateway/dialects/chat_blocks.hpp"

#include <utility>

#include "gateway/dialects/limits.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::size_t kNoCall = kMaxMerged;

struct TextMember {
  const char* name;
  BlockKind kind;
};
// Reasoning has two names at different makers; vLLM sends the same text under both.
constexpr TextMember kTexts[] = {{"reasoning_content", BlockKind::reasoning},
                                 {"reasoning", BlockKind::reasoning},
                                 {"content", BlockKind::text},
                                 {"refusal", BlockKind::refusal}};

}  // namespace

void ChatBlocks::ObjectEnd::feed(std::string_view piece) {
  for (const char c : piece) {
    if (escaped) {
      escaped = false;
    } else if (in_string) {
      escaped = c == '\\';
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && depth > 0) {
      done = --depth == 0;
    }
  }
}

Result<void> ChatBlocks::add(const Json& choice) {
  const Json* delta = object_member(choice, "delta");
  if (!delta) return {};
  const Json* logprobs = object_member(choice, "logprobs");
  if (logprobs) logprobs = array_member(*logprobs, "content");
  for (const auto& [name, kind] : kTexts) {
    const Json* value = member(*delta, name);
    if (!value || value->is_null()) continue;
    if (!value->is_string()) {
      return fail(ErrorCode::protocol, "chunk: '" + std::string(name) + "' is not a string");
    }
    const auto& piece = value->get_ref<const std::string&>();
    if (piece.empty()) continue;
    if (kind == BlockKind::reasoning) {
      if (reasoning_name_.empty()) reasoning_name_ = name;
      if (name != reasoning_name_) continue;
    }
    auto done = text(kind, piece, kind == BlockKind::text ? logprobs : nullptr);
    if (!done) return done;
  }
  for (const char* name : {"function_call", "images", "audio"}) {
    const Json* value = member(*delta, name);
    if (!value || value->empty()) continue;
    return fail(ErrorCode::protocol, "chunk: '" + std::string(name) + "' has no counterpart");
  }
  const Json* calls = member(*delta, "tool_calls");
  if (!calls || calls->is_null()) return {};
  if (!calls->is_array()) return fail(ErrorCode::protocol, "chunk: 'tool_calls' is no array");
  for (const auto& each : *calls) {
    if (auto done = call(each); !done) return done;
  }
  return {};
}

Result<ChatBlocks::Block*> ChatBlocks::make(BlockStart start) {
  if (blocks_.size() >= kMaxMerged) {
    return fail(ErrorCode::protocol, "more than 1024 texts and tool calls in an answer");
  }
  Block block;
  block.start = std::move(start);
  block.call = kNoCall;
  blocks_.push_back(std::move(block));
  open_next();
  return &blocks_.back();
}

Result<void> ChatBlocks::text(BlockKind kind, const std::string& piece, const Json* logprobs) {
  any_refusal_ = any_refusal_ || kind == BlockKind::refusal;
  if (blocks_.empty() || blocks_.back().start.kind != kind) {
    BlockStart start;
    start.kind = kind;
    if (auto made = make(std::move(start)); !made) return tl::make_unexpected(made.error());
  }
  put(blocks_.back(), piece, logprobs);
  return {};
}

Result<void> ChatBlocks::call(const Json& delta) {
  const Json* index = member(delta, "index");
  if (!index || !index->is_number_unsigned() || index->get<std::size_t>() >= kMaxMerged) {
    return fail(ErrorCode::protocol, "chunk: a tool call's index is not a number from 0 to 1023");
  }
  const auto wanted = index->get<std::size_t>();
  std::size_t at = blocks_.size();
  while (at > 0 && blocks_[at - 1].call != wanted) --at;
  const Json* function = object_member(delta, "function");
  if (at == 0) {
    BlockStart start;
    start.kind = BlockKind::call;
    start.call_id = text_or_empty(delta, "id");
    start.name = function ? text_or_empty(*function, "name") : std::string();
    if (start.name.empty() || start.call_id.empty()) {
      return fail(ErrorCode::protocol, "chunk: a tool call starts without its id or name");
    }
    auto made = make(std::move(start));
    if (!made) return tl::make_unexpected(made.error());
    (*made)->call = wanted;
    any_call_ = true;
    at = blocks_.size();
  }
  Block& block = blocks_[at - 1];
  const Json* arguments = function ? member(*function, "arguments") : nullptr;
  if (!arguments || arguments->is_null()) return {};
  // Some servers send the object instead of its text.
  const std::string whole = arguments->is_object() ? to_text(*arguments) : std::string();
  const std::string* piece =
      arguments->is_object() ? &whole : arguments->get_ptr<const std::string*>();
  if (!piece) {
    return fail(ErrorCode::protocol, "chunk: a tool call's arguments are neither text nor object");
  }
  if (piece->empty()) return {};
  if (at < begun_) {  // it has ended
    if (piece->find_first_not_of(" \t\r\n") == std::string::npos) return {};
    return fail(ErrorCode::protocol, "chunk: a tool call goes on after the end of its arguments");
  }
  put(block, *piece, nullptr);
  block.arguments.feed(*piece);
  if (block.arguments.done) open_next();
  return {};
}

void ChatBlocks::put(Block& block, std::string_view piece, const Json* logprobs) {
  const auto at = static_cast<std::size_t>(&block - blocks_.data());
  if (at + 1 == begun_) {
    writer_.append(piece, logprobs);
    return;
  }
  block.waiting += piece;
  if (logprobs) {
    block.waiting_logprobs.insert(block.waiting_logprobs.end(), logprobs->begin(), logprobs->end());
  }
}

void ChatBlocks::open_next() {
  while (begun_ < blocks_.size()) {
    if (begun_ > 0) {
      const Block& open = blocks_[begun_ - 1];
      if (open.start.kind == BlockKind::call && !open.arguments.done) return;
      writer_.end();
    }
    Block& next = blocks_[begun_++];
    writer_.begin(next.start);
    if (!next.waiting.empty()) {
      writer_.append(next.waiting,
                     next.waiting_logprobs.empty() ? nullptr : &next.waiting_logprobs);
    }
    next.waiting.clear();
  }
}

void ChatBlocks::finish() {
  for (auto& block : blocks_) block.arguments.done = true;
  open_next();
  if (begun_ > 0) writer_.end();
}

}  // namespace fixpoint::dialects
