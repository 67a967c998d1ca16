// Functions that every template can call.
#include <ctime>
#include <limits>

#include "local_engine/text/chat_template.hpp"
#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"

namespace fixpoint::engine::jinja {

namespace {

Value range(Runtime& runtime, const Arguments& arguments) {
  const auto bound = arguments.bind("range", {"start", "stop", "step"});
  const auto number = [&](std::size_t at) {
    require_defined(*bound[at]);
    if (!bound[at]->is(Kind::integer) && !bound[at]->is(Kind::boolean)) {
      fail_render("range() needs integers");
    }
    return plus(*bound[at]).integer();
  };
  if (!bound[0]) fail_render("range() needs an argument");
  const std::int64_t start = bound[1] ? number(0) : 0;
  const std::int64_t stop = bound[1] ? number(1) : number(0);
  const std::int64_t step = bound[2] ? number(2) : 1;
  if (step == 0) fail_render("range(): the step is zero");
  std::vector<Value> out;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    runtime.step();
    out.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return make_list(std::move(out), ListKind::range);
}

// dict() and namespace() take entries from one dict and from named arguments.
std::vector<std::pair<Value, Value>> entries(const Arguments& arguments, const char* callee) {
  std::vector<std::pair<Value, Value>> out;
  if (arguments.positional.size() > 1 ||
      (arguments.positional.size() == 1 && !arguments.positional[0].is(Kind::dict))) {
    fail_render(std::string(callee) + "() takes one dict and named arguments");
  }
  if (!arguments.positional.empty()) out = arguments.positional[0].dict().items;
  for (const auto& [name, value] : arguments.named) out.emplace_back(Value(name), value);
  return out;
}

Value dict(Runtime& runtime, const Arguments& arguments) {
  auto items = entries(arguments, "dict");
  runtime.charge_items(items.size());
  return make_dict(std::move(items));
}

Value name_space(Runtime& runtime, const Arguments& arguments) {
  Namespace* made = runtime.make_namespace();
  for (const auto& [name, value] : entries(arguments, "namespace")) {
    runtime.charge_items(1 + made->attributes.size());  // set() searches them
    if (!name.is(Kind::string)) fail_render("namespace(): names must be str");
    made->set(name.string(), value);
  }
  return Value(made);
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const auto bound = arguments.bind("raise_exception", {"message"});
  if (!bound[0]) fail_render("raise_exception() needs a message");
  throw RaisedByTemplate(to_str(runtime, *bound[0]));
}

// In UTC and in English (the C locale), whatever the machine says.
Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const auto bound = arguments.bind("strftime_now", {"format"});
  if (!bound[0] || !bound[0]->is(Kind::string)) fail_render("strftime_now() needs a format");
  const std::string& format = bound[0]->string();
  constexpr std::size_t kMaxFormat = 256;
  if (format.size() > kMaxFormat) fail_render("strftime_now(): format longer than 256 bytes");
  for (std::size_t at = format.find('%'); at != std::string::npos; at = format.find('%', at + 1)) {
    ++at;
    if (at < format.size() && format[at] == '-') ++at;  // no padding
    if (at >= format.size() ||
        std::string_view("aAbBdHIjmMpSUwWyYcxX%").find(format[at]) == std::string_view::npos) {
      throw TemplateError(ErrorCode::unsupported,
                          "strftime_now(): a conversion in '" + format + "' is not implemented");
    }
  }
  if (format.empty()) return Value(std::string());
  const std::time_t now = std::chrono::system_clock::to_time_t(runtime.input().clock());
  std::tm parts{};
  if (gmtime_r(&now, &parts) == nullptr) fail_render("strftime_now(): the clock is out of range");
  std::string out(kMaxFormat * 16, '\0');  // the longest conversion, %c, has 24 characters
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &parts));
  return runtime.make_string(std::move(out));
}

struct Named {
  std::string_view name;
  Function function;
};

constexpr Named kFunctions[] = {
    {"dict", dict},   {"namespace", name_space},      {"raise_exception", raise_exception},
    {"range", range}, {"strftime_now", strftime_now},
};

}  // namespace

Function find_function(std::string_view name) {
  for (const Named& entry : kFunctions) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace fixpoint::engine::jinja
