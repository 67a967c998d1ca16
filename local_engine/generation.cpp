#include "local_engine/generation.hpp"

#include <utility>

namespace fixpoint::engine {

Generation::Generation(std::uint64_t id, GenerateRequest request, GenerateCallback callback,
                       std::size_t context, const Vocabulary& vocabulary)
    : id_(id),
      prompt_tokens_(request.prompt.size()),
      max_tokens_(request.max_tokens.value_or(context - prompt_tokens_)),
      top_logprobs_(static_cast<std::size_t>(request.top_logprobs)),
      scores_prompt_(request.prompt_logprobs),
      tokens_(std::move(request.prompt)),
      callback_(std::move(callback)),
      vocabulary_(&vocabulary),
      sampler_(std::move(request.sampling), request.top_logprobs),
      text_(std::move(request.stop)) {}

bool Generation::wants_logits(std::size_t position) const {
  return position + 1 < prompt_tokens_ ? scores_prompt_ : max_tokens_ > 0;
}

Result<GeneratedToken> Generation::read(std::span<float> logits, std::size_t position) {
  const std::size_t next = position + 1;
  if (next < prompt_tokens_) return score_token(logits, tokens_[next], next, top_logprobs_);
  return sampler_.sample(logits, next);
}

void Generation::take(Result<GeneratedToken> token, std::size_t position) {
  if (!next_) return;
  if (token && position + 1 < prompt_tokens_) {
    prompt_logprobs_.push_back(*std::move(token));
  } else {
    next_ = std::move(token);
  }
}

bool Generation::advance() {
  if (!next_) {
    fail_with(next_.error());
    return false;
  }
  if (max_tokens_ == 0) {
    GenerateEvent event = this->event();
    event.finish = FinishReason::length;
    callback_(std::move(event));
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
      event.stopped_by = text_.stopped_by();
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

GenerateEvent Generation::event() {
  GenerateEvent event;
  event.prompt_logprobs = std::exchange(prompt_logprobs_, {});
  event.visible_tokens = text_.tokens_shown();
  event.usage = {prompt_tokens_, tokens_.size() - prompt_tokens_};
  return event;
}

}  // namespace fixpoint::engine
