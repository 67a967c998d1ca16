#include "gateway/api/local_answer.hpp"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "gateway/api/local_logprobs.hpp"
#include "gateway/dialects/json_access.hpp"

namespace fixpoint {
namespace {

// One choice as it grows.
struct Choice {
  std::string text;                            // with the prompt, if that is echoed
  std::vector<engine::GeneratedToken> prompt;  // its tokens but the first, if they are shown
  std::vector<engine::GeneratedToken> tokens;
  bool echoed = false;          // the prompt was published
  std::size_t shown = 0;        // tokens whose logprobs were published
  std::size_t text_offset = 0;  // completions: where the next token's text begins, in characters
  engine::Usage usage;
  std::optional<engine::FinishReason> finish;
};

const char* finish_name(engine::FinishReason reason) {
  return reason == engine::FinishReason::stop ? "stop" : "length";
}

// Shared by the engine's callbacks of all choices. The engine has one thread, but submit() runs on
// the gateway's while the first events may already come, so a mutex guards it all.
class LocalAnswer : public std::enable_shared_from_this<LocalAnswer> {
 public:
  LocalAnswer(engine::Engine& engine, Endpoint endpoint, LocalRequest request,
              std::shared_ptr<AnswerJob> job)
      : engine_(engine),
        endpoint_(endpoint),
        request_(std::move(request)),
        job_(std::move(job)),
        choices_(request_.choices.size()) {
    const auto seconds = job_->record.created_ms / 1000;
    const bool chat = endpoint_ == Endpoint::chat_completions;
    head_ = {{"id", (chat ? "chatcmpl-" : "cmpl-") + job_->record.id.substr(4)},
             {"object", chat ? "chat.completion.chunk" : "text_completion"},
             {"created", seconds},
             {"model", engine_.info().name},
             {"system_fingerprint", engine_.info().fingerprint}};
  }

  void start() {
    submitted_at_ = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < request_.choices.size(); ++i) {
      auto submitted = engine_.submit(
          request_.choices[i],
          [self = shared_from_this(), i](auto event) { self->on_event(i, std::move(event)); });
      const std::lock_guard lock(mutex_);
      if (!submitted) {
        fail_locked(engine_error(submitted.error(), request_.prompt_param));
        return;
      }
      ids_.push_back(*submitted);
      if (done_) cancel_locked();  // another choice failed meanwhile
    }
  }

  void abandon() {
    const std::lock_guard lock(mutex_);
    cancel_locked();
  }

 private:
  void on_event(std::size_t index, engine::GenerateEvent event) {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    auto& choice = choices_[index];
    choice.usage = event.usage;
    if (!event.prompt_logprobs.empty()) choice.prompt = std::move(event.prompt_logprobs);
    std::move(event.tokens.begin(), event.tokens.end(), std::back_inserter(choice.tokens));
    if (event.error) {
      collect_record();
      fail_locked(event.error->code == engine::ErrorCode::cancelled
                      ? api_error(499, "server_error", "cancelled", "cancelled")
                      : engine_error(*event.error, request_.prompt_param));
      return;
    }
    publish(index, choice, event);
    if (done_) return;  // a translation failed
    choice.text += event.text;
    choice.finish = event.finish;
    const bool all = std::all_of(choices_.begin(), choices_.end(),
                                 [](const Choice& one) { return one.finish.has_value(); });
    if (all) finish();
  }

  void publish(std::size_t index, Choice& choice, const engine::GenerateEvent& event) {
    const bool chat = endpoint_ == Endpoint::chat_completions;
    if (chat && !std::exchange(role_sent_, true)) {
      // For the translation alone: Anthropic's streams begin with it, OpenAI's own end with it.
      if (job_->translator) publish_usage({{"prompt_tokens", prompt_tokens()}});
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        emit({{"index", i},
              {"delta", {{"role", "assistant"}, {"content", ""}}},
              {"logprobs", nullptr},
              {"finish_reason", nullptr}});
      }
    }
    if (const auto* echo = echo_of(index); echo && !std::exchange(choice.echoed, true)) {
      choice.text = echo->text;
      emit({{"index", index},
            {"text", echo->text},
            {"logprobs", request_.logprobs ? prompt_logprobs(index, choice) : Json()},
            {"finish_reason", nullptr}});
    }
    const auto visible = visible_tokens(index, choice, event);
    if (!event.text.empty() || visible > choice.shown) {
      const auto begin = std::exchange(choice.shown, std::max(choice.shown, visible));
      Json probs = request_.logprobs ? logprobs(choice, begin, choice.shown) : Json();
      Json one = {{"index", index}};
      if (chat) {
        one["delta"] = {{"content", event.text}};
      } else {
        one["text"] = event.text;
      }
      one["logprobs"] = std::move(probs);
      one["finish_reason"] = nullptr;
      emit(std::move(one));
    }
    if (event.finish) {
      Json last = {{"index", index}};
      last[chat ? "delta" : "text"] = chat ? Json::object() : Json("");
      last["logprobs"] = nullptr;
      last["finish_reason"] = finish_name(*event.finish);
      // For Anthropic's stop_sequence. OpenAI's own answers do not say.
      if (job_->translator && !event.stopped_by.empty()) last["stop_reason"] = event.stopped_by;
      // Nor has OpenAI a word for this.
      if (request_.limit_left_out && *event.finish == engine::FinishReason::length) {
        last["finish_reason"] = "model_context_window_exceeded";
      }
      emit(std::move(last));
    }
  }

  void emit(Json choice) {
    Json chunk = head_;
    chunk["choices"] = Json::array({std::move(choice)});
    publish_chunk(chunk);
  }

  void publish_chunk(const Json& chunk) {
    if (done_) return;  // a translation failed
    if (auto published = job_->publish({{}, dialects::to_text(chunk)}); !published) {
      fail_locked(translation_failed(published.error()));
    }
  }

  void publish_usage(Json usage) {
    Json chunk = head_;
    chunk["choices"] = Json::array();
    chunk["usage"] = std::move(usage);
    publish_chunk(chunk);
  }

  static ApiError translation_failed(const Error& error) {
    return api_error(500, "server_error", "translation_failed", error.message);
  }

  const Echo* echo_of(std::size_t index) const {
    return request_.echoes.empty() ? nullptr : &request_.echoes[index / request_.n];
  }

  // Whoever scores a text by echo counts tokens from the end, so there the end token, which is no
  // text, is among them.
  std::size_t visible_tokens(std::size_t index, const Choice& choice,
                             const engine::GenerateEvent& event) const {
    const bool ended = echo_of(index) && event.finish == engine::FinishReason::stop &&
                       engine_.tokenizer().ends_generation(choice.tokens.back().id);
    return ended ? choice.tokens.size() : std::min(event.visible_tokens, choice.tokens.size());
  }

  // The logprobs object of generated tokens [from, to) in the endpoint's own form.
  Json logprobs(Choice& choice, std::size_t from, std::size_t to) const {
    if (endpoint_ == Endpoint::chat_completions) {
      return chat_logprobs(engine_.tokenizer(), std::span(choice.tokens).subspan(from, to - from),
                           request_.top_logprobs);
    }
    TextLogprobs out(engine_.tokenizer(), request_.top_logprobs);
    add_generated(out, choice, from, to);
    return std::move(out).finish();
  }
  Json prompt_logprobs(std::size_t index, Choice& choice) const {
    TextLogprobs out(engine_.tokenizer(), request_.top_logprobs);
    add_prompt(out, index, choice);
    return std::move(out).finish();
  }
  // All that was shown of a choice.
  Json whole_logprobs(std::size_t index, Choice& choice) const {
    if (!echo_of(index)) return logprobs(choice, 0, choice.shown);
    TextLogprobs out(engine_.tokenizer(), request_.top_logprobs);
    add_prompt(out, index, choice);
    add_generated(out, choice, 0, choice.shown);
    return std::move(out).finish();
  }

  void add_prompt(TextLogprobs& out, std::size_t index, Choice& choice) const {
    const auto& prompt = request_.choices[index].prompt;
    const auto& echo = *echo_of(index);
    std::size_t offset = 0;
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      if (i == 0) {
        out.add_first(prompt[0], 0);
      } else {
        out.add(choice.prompt[i - 1], offset);
      }
      const bool is_text = i > 0 || !echo.has_bos;
      if (is_text) offset += count_characters(engine_.tokenizer().bytes(prompt[i]));
    }
    choice.text_offset = count_characters(echo.text);
  }
  void add_generated(TextLogprobs& out, Choice& choice, std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i) {
      const auto& token = choice.tokens[i];
      out.add(token, choice.text_offset);
      choice.text_offset += count_characters(engine_.tokenizer().bytes(token.id));
    }
  }

  void finish() {
    job_->waited = std::chrono::steady_clock::now() - submitted_at_;
    collect_record();
    Json answer = head_;
    const bool chat = endpoint_ == Endpoint::chat_completions;
    if (chat) answer["object"] = "chat.completion";
    answer["choices"] = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      auto& choice = choices_[i];
      choice.text_offset = 0;
      Json one = {{"index", i}};
      if (chat) {
        one["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
      } else {
        one["text"] = choice.text;
      }
      one["logprobs"] = request_.logprobs ? whole_logprobs(i, choice) : Json();
      one["finish_reason"] = finish_name(*choice.finish);
      answer["choices"].push_back(std::move(one));
    }
    const Json usage = {
        {"prompt_tokens", job_->record.prompt_tokens},
        {"completion_tokens", job_->record.completion_tokens},
        {"total_tokens", job_->record.prompt_tokens + job_->record.completion_tokens}};
    answer["usage"] = usage;
    publish_usage(usage);
    if (std::exchange(done_, true)) return;  // a translation failed
    // Length stops too: the key has the limit, and the engine would say the same again.
    constexpr bool storable = true;
    if (auto done = job_->complete(dialects::to_text(answer), answer, {{}, "[DONE]"}, storable);
        !done) {
      job_->fail(translation_failed(done.error()));
    }
  }

  // Each prompt's once, however many choices it has.
  std::size_t prompt_tokens() const {
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < request_.choices.size(); i += request_.n) {
      tokens += request_.choices[i].prompt.size();
    }
    return tokens;
  }

  // The record's tokens are the generated ones; a scored prompt is in the answer alone.
  void collect_record() {
    auto& record = job_->record;
    record.model = engine_.info().name;
    record.fingerprint = engine_.info().fingerprint;
    record.logprobs_status = "captured";
    record.prompt_tokens = prompt_tokens();
    record.completion_tokens = 0;
    if (choices_[0].finish) record.finish_reason = finish_name(*choices_[0].finish);
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      record.completion_tokens += choices_[i].usage.completion_tokens;
      for (std::size_t k = 0; k < choices_[i].tokens.size(); ++k) {
        record.tokens.push_back(logged(choices_[i].tokens[k], i, k));
      }
    }
  }

  LoggedToken logged(const engine::GeneratedToken& token, std::size_t choice,
                     std::size_t position) const {
    LoggedToken out;
    out.choice = static_cast<std::uint32_t>(choice);
    out.position = static_cast<std::uint32_t>(position);
    out.id = token.id;
    out.bytes = std::string(engine_.tokenizer().bytes(token.id));
    out.logprob = token.logprob;
    out.margin = token.margin;
    for (const auto& other : token.top) {
      out.top.push_back(
          {other.id, std::string(engine_.tokenizer().bytes(other.id)), other.logprob});
    }
    return out;
  }

  void fail_locked(const ApiError& error) {
    if (std::exchange(done_, true)) return;
    job_->waited = std::chrono::steady_clock::now() - submitted_at_;
    cancel_locked();
    job_->fail(error);
  }
  void cancel_locked() {
    for (const auto id : ids_) engine_.cancel(id);
  }

  engine::Engine& engine_;
  const Endpoint endpoint_;
  LocalRequest request_;
  std::shared_ptr<AnswerJob> job_;
  Json head_;  // members that every chunk and the answer share

  std::chrono::steady_clock::time_point submitted_at_;  // set before the engine knows of us

  std::mutex mutex_;
  std::vector<std::uint64_t> ids_;
  std::vector<Choice> choices_;
  bool role_sent_ = false;
  bool done_ = false;  // the job has its complete() or fail()
};

}  // namespace

void start_local_answer(engine::Engine& engine, Endpoint endpoint, LocalRequest request,
                        std::shared_ptr<AnswerJob> job) {
  auto* flight = job->flight.get();
  auto answer = std::make_shared<LocalAnswer>(engine, endpoint, std::move(request), std::move(job));
  // Weak: the flight must not keep its own maker alive.
  flight->on_abandoned([weak = std::weak_ptr(answer)] {
    if (auto alive = weak.lock()) alive->abandon();
  });
  answer->start();
}

}  // namespace fixpoint
