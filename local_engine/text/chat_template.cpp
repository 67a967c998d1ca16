#include "local_engine/text/chat_template.hpp"

#include <utility>
#include <vector>

#include "local_engine/text/jinja/interpreter.hpp"
#include "local_engine/text/jinja/parser.hpp"

namespace fixpoint::engine {

struct ChatTemplate::Impl {
  std::string source;
  std::string bos_token, eos_token;
  jinja::Body body;
};

namespace {

tl::unexpected<Error> to_error(const jinja::TemplateError& error) {
  const std::string line = error.line > 0 ? " line " + std::to_string(error.line) : "";
  return fail(error.code, "chat template" + line + ": " + error.what());
}

using Variables = std::vector<std::pair<std::string, jinja::Value>>;

Variables variables_of(const ChatInput& input, const std::string& bos, const std::string& eos) {
  Variables out;
  const auto set = [&](const std::string& name, jinja::Value value) {
    for (auto& [known, old] : out) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    out.emplace_back(name, std::move(value));
  };
  set("messages", jinja::from_json(input.messages));
  set("tools", jinja::from_json(input.tools));
  set("documents", jinja::Value());
  set("add_generation_prompt", jinja::Value(input.add_generation_prompt));
  set("bos_token", jinja::Value(bos));
  set("eos_token", jinja::Value(eos));
  if (!input.extra.is_object() && !input.extra.is_null()) {
    jinja::fail_render("extra template variables must be an object");
  }
  constexpr std::size_t kMaxExtra = 256;
  if (input.extra.size() > kMaxExtra) {
    jinja::fail_render("more than " + std::to_string(kMaxExtra) + " extra template variables");
  }
  for (const auto& [name, value] : input.extra.items()) {
    if (name == "messages" || name == "tools" || name == "add_generation_prompt") {
      jinja::fail_render("the template variable '" + name + "' cannot be given as an extra one");
    }
    set(name, jinja::from_json(value));
  }
  return out;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string source, std::string bos_token,
                                                          std::string eos_token) {
  try {
    jinja::Body body = jinja::parse_template(source);
    auto impl = std::make_unique<Impl>(
        Impl{std::move(source), std::move(bos_token), std::move(eos_token), std::move(body)});
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(impl)));
  } catch (const jinja::TemplateError& error) {
    return to_error(error);
  }
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  try {
    jinja::Runtime runtime(input);
    jinja::Interpreter interpreter(runtime);
    return interpreter.render(impl_->body, variables_of(input, impl_->bos_token, impl_->eos_token));
  } catch (const jinja::RaisedByTemplate& raised) {
    return fail(ErrorCode::bad_request, raised.what());
  } catch (const jinja::TemplateError& error) {
    return to_error(error);
  }
}

const std::string& ChatTemplate::source() const {
  return impl_->source;
}

}  // namespace fixpoint::engine
