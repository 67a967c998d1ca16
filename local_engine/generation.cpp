#include "local_engine/generation.hpp"

#include <utility>

namespace fixpoint::engine {

Generation::Generation(std::uint64_t id, GenerateRequest request, GenerateCallback callback,
                       std::size_t context, const Vocabulary& vocabulary)
    : id_(id),
      prompt_tokens_(request.prompt.size()),
      max_tokens_(request.max_tokens != 0 ? request.max_tokens : context - prompt_tokens_),
      tokens_(std::move(request.prompt)),
      callback_(std::move(callback)),
      vocabulary_(&vocabulary),
      sampler_(std::move(request.sampling), request.top_logprobs),
      text_(std::move(request.stop)) {}

void Generation::sample(std::span<float> logits) {
  next_ = sampler_.sample(logits, tokens_.size());
}

bool Generation::advance() {
  if (!next_) {
    fail_with(next_.error());
    return false;
  }
  const TokenId id = next_->id;
  tokens_.push_back(id);

  GenerateEvent event = this->event();
  event.tokens.push_back(*std::exchange(next_, GeneratedToken{}));
  const Tokenizer& tokenizer = *vocabulary_->tokenizer;
  if (tokenizer.ends_generation(id)) {
    // The end token is counted and reported, but it is no text.
    event.text = text_.finish();
    event.finish = FinishReason::stop;
  } else {
    const bool hidden = vocabulary_->is_control[static_cast<std::size_t>(id)];
    event.text = text_.push(hidden ? std::string_view() : tokenizer.bytes(id));
    if (text_.stopped()) {
      event.finish = FinishReason::stop;
    } else if (event.usage.completion_tokens == max_tokens_) {
      event.text += text_.finish();
      event.finish = FinishReason::length;
    }
  }
  event.visible_tokens = text_.tokens_shown();
  const bool ended = event.finish.has_value();
  callback_(std::move(event));
  return !ended;
}

void Generation::fail_with(Error error) {
  GenerateEvent event = this->event();
  event.error = std::move(error);
  callback_(std::move(event));
}

GenerateEvent Generation::event() const {
  GenerateEvent event;
  event.visible_tokens = text_.tokens_shown();
  event.usage = {prompt_tokens_, tokens_.size() - prompt_tokens_};
  return event;
}

}  // namespace fixpoint::engine
