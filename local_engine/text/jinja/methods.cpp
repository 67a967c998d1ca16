// Methods of str, dict and list.
#include <algorithm>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"
#include "local_engine/text/jinja/unicode.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

constexpr std::string_view kStringMethods[] = {
    "strip",    "lstrip",  "rstrip", "split", "rsplit",       "splitlines",  "startswith",
    "endswith", "replace", "upper",  "lower", "title",        "capitalize",  "find",
    "rfind",    "index",   "count",  "join",  "removeprefix", "removesuffix"};
constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values"};
constexpr std::string_view kDictForbidden[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"count", "index"};
constexpr std::string_view kListForbidden[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};

template <std::size_t N>
bool has(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const std::string& text_argument(std::string_view method, const std::optional<Value>& value) {
  if (!value || !value->is(Kind::string)) {
    if (value) require_defined(*value);
    fail_render(std::string(method) + "() needs a str argument");
  }
  return value->string();
}

std::int64_t count_argument(std::string_view method, const std::optional<Value>& value,
                            std::int64_t otherwise) {
  if (!value) return otherwise;
  if (!value->is(Kind::integer)) fail_render(std::string(method) + "() needs an integer argument");
  return value->integer();
}

Value strip_method(Runtime& runtime, const std::string& self, std::string_view name,
                   const Arguments& arguments) {
  const auto bound = arguments.bind(name, {"chars"});
  const Side side = name == "strip" ? Side::both : name == "lstrip" ? Side::left : Side::right;
  if (!bound[0] || bound[0]->is(Kind::none)) {
    return runtime.make_string(std::string(strip(self, side)));
  }
  const std::string_view set = text_argument(name, bound[0]);
  runtime.charge_text(self.size() * (1 + set.size() / 16));
  return runtime.make_string(std::string(strip(self, side, &set)));
}

using Pieces = std::vector<std::string_view>;

// Words between runs of white space. With `limit` >= 0 at most so many cuts, counted from the
// chosen end; the rest stays one piece, its outer white space (on the far side) included.
Pieces split_space(std::string_view text, std::int64_t limit, bool from_end) {
  struct Word {
    std::size_t begin, end;
  };
  std::vector<Word> words;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_code_point(text.substr(at));
    const bool space = is_space(point.value);
    if (!space && !inside) words.push_back({at, at});
    inside = !space;
    at += point.size;
    if (inside) words.back().end = at;
  }
  const std::size_t cuts = limit < 0 ? words.size() : static_cast<std::size_t>(limit);
  Pieces out;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      out.push_back(text.substr(words[i].begin, words[i].end - words[i].begin));
    }
  };
  if (cuts >= words.size()) {
    add(0, words.size());
  } else if (from_end) {
    const std::size_t kept = words.size() - cuts;
    out.push_back(text.substr(0, words[kept - 1].end));
    add(kept, words.size());
  } else {
    add(0, cuts);
    out.push_back(text.substr(words[cuts].begin));
  }
  return out;
}

Pieces split_at(std::string_view text, std::string_view separator, std::int64_t limit,
                bool from_end) {
  Pieces out;
  while (limit-- != 0) {
    const std::size_t at = from_end ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    if (from_end) {
      out.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      out.push_back(text.substr(0, at));
      text = text.substr(at + separator.size());
    }
  }
  out.push_back(text);
  if (from_end) std::reverse(out.begin(), out.end());
  return out;
}

Value to_list(Runtime& runtime, const Pieces& pieces) {
  runtime.charge_items(pieces.size());
  std::vector<Value> out;
  out.reserve(pieces.size());
  for (const std::string_view piece : pieces) out.emplace_back(std::string(piece));
  return make_list(std::move(out));
}

Value split_method(Runtime& runtime, const std::string& self, std::string_view name,
                   const Arguments& arguments) {
  const auto bound = arguments.bind(name, {"sep", "maxsplit"});
  const std::int64_t limit = count_argument(name, bound[1], -1);
  const bool from_end = name == "rsplit";
  if (!bound[0] || bound[0]->is(Kind::none)) {
    return to_list(runtime, split_space(self, limit, from_end));
  }
  const std::string& separator = text_argument(name, bound[0]);
  if (separator.empty()) fail_render(std::string(name) + "(): the separator is empty");
  return to_list(runtime, split_at(self, separator, limit, from_end));
}

bool affix_matches(const std::string& self, const Value& affix, std::string_view name) {
  if (affix.is(Kind::list) && affix.list().kind == ListKind::tuple) {
    for (const Value& item : affix.list().items) {
      if (affix_matches(self, item, name)) return true;
    }
    return false;
  }
  const std::string& text = text_argument(name, affix);
  return name == "startswith" ? self.starts_with(text) : self.ends_with(text);
}

Value find_method(const std::string& self, std::string_view name, const Arguments& arguments) {
  const std::string& wanted = text_argument(name, arguments.bind(name, {"sub"})[0]);
  const std::size_t at = name == "rfind" ? self.rfind(wanted) : self.find(wanted);
  if (at == std::string::npos && name == "index") fail_render("index(): the text is not there");
  if (at == std::string::npos) return Value(std::int64_t{-1});
  return Value(static_cast<std::int64_t>(character_index(self, at)));
}

Value count_method(const std::string& self, const Arguments& arguments) {
  const std::string& wanted = text_argument("count", arguments.bind("count", {"sub"})[0]);
  if (wanted.empty()) return Value(static_cast<std::int64_t>(count_characters(self) + 1));
  std::int64_t count = 0;
  for (std::size_t at = self.find(wanted); at != std::string::npos;
       at = self.find(wanted, at + wanted.size())) {
    ++count;
  }
  return Value(count);
}

Value join_method(Runtime& runtime, const std::string& self, const Arguments& arguments) {
  const auto bound = arguments.bind("join", {"iterable"});
  if (!bound[0]) fail_render("join() needs an argument");
  std::string out;
  bool first = true;
  for (const Value& item : iterate(runtime, *bound[0])) {
    if (!first) out += self;
    first = false;
    out += text_argument("join", item);
    runtime.check_text_size(out.size());
  }
  return runtime.make_string(std::move(out));
}

Value string_method(Runtime& runtime, const Value& value, std::string_view name,
                    const Arguments& arguments) {
  const std::string& self = value.string();
  runtime.charge_text(self.size());
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    return strip_method(runtime, self, name, arguments);
  }
  if (name == "split" || name == "rsplit") return split_method(runtime, self, name, arguments);
  if (name == "startswith" || name == "endswith") {
    const auto bound = arguments.bind(name, {"prefix"});
    return Value(affix_matches(self, bound[0].value_or(Value()), name));
  }
  if (name == "find" || name == "rfind" || name == "index")
    return find_method(self, name, arguments);
  if (name == "count") return count_method(self, arguments);
  if (name == "join") return join_method(runtime, self, arguments);
  if (name == "replace") {
    const auto bound = arguments.bind(name, {"old", "new", "count"});
    return replace_text(runtime, self, text_argument(name, bound[0]), text_argument(name, bound[1]),
                        count_argument(name, bound[2], -1));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const std::string& affix = text_argument(name, arguments.bind(name, {"affix"})[0]);
    const bool prefix = name == "removeprefix";
    if (!(prefix ? self.starts_with(affix) : self.ends_with(affix))) return value;
    return Value(self.substr(prefix ? affix.size() : 0, self.size() - affix.size()));
  }
  arguments.bind(name, {});  // the rest take none
  if (name == "upper") return runtime.make_string(to_upper(self));
  if (name == "lower") return runtime.make_string(to_lower(self));
  if (name == "title") return runtime.make_string(title_case(self));
  if (name == "capitalize") return runtime.make_string(capitalize(self));
  return to_list(runtime, split_lines(self));  // splitlines
}

Value dict_method(Runtime& runtime, const Dict& self, std::string_view name,
                  const Arguments& arguments) {
  if (name == "get") {
    const auto bound = arguments.bind(name, {"key", "default"});
    if (!bound[0]) fail_render("get() needs a key");
    check_hashable(*bound[0]);
    if (const Value* found = self.find(*bound[0])) return *found;
    return bound[1].value_or(Value());
  }
  arguments.bind(name, {});
  runtime.charge_items(self.items.size());
  std::vector<Value> out;
  for (const auto& [key, value] : self.items) {
    if (name == "keys") {
      out.push_back(key);
    } else if (name == "values") {
      out.push_back(value);
    } else {
      out.push_back(make_list({key, value}, ListKind::tuple));
    }
  }
  return make_list(std::move(out), name == "keys"     ? ListKind::keys
                                   : name == "values" ? ListKind::values
                                                      : ListKind::items);
}

Value list_method(Runtime& runtime, const List& self, std::string_view name,
                  const Arguments& arguments) {
  const auto bound = arguments.bind(name, {"value"});
  if (!bound[0]) fail_render(std::string(name) + "() needs an argument");
  std::int64_t count = 0;
  for (std::size_t i = 0; i < self.items.size(); ++i) {
    if (!equal(runtime, self.items[i], *bound[0])) continue;
    if (name == "index") return Value(static_cast<std::int64_t>(i));
    ++count;
  }
  if (name == "index") fail_render("index(): the value is not in the list");
  return Value(count);
}

}  // namespace

Value replace_text(Runtime& runtime, std::string_view text, std::string_view old,
                   std::string_view fresh, std::int64_t count) {
  std::string out;
  std::size_t at = 0;
  if (old.empty()) {  // before every character and at the end
    while (count-- != 0) {
      out += fresh;
      if (at == text.size()) break;
      const std::size_t size = decode_code_point(text.substr(at)).size;
      out += text.substr(at, size);
      at += size;
      runtime.check_text_size(out.size());
      if (count == 0) break;
    }
    out += text.substr(at);
    return runtime.make_string(std::move(out));
  }
  while (count-- != 0) {
    const std::size_t found = text.find(old, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += fresh;
    at = found + old.size();
    runtime.check_text_size(out.size());
  }
  out += text.substr(at);
  return runtime.make_string(std::move(out));
}

MethodStatus method_status(const Value& self, std::string_view name) {
  bool allowed = false;
  bool forbidden = false;
  if (self.is(Kind::string)) {
    allowed = has(kStringMethods, name);
  } else if (self.is(Kind::dict)) {
    allowed = has(kDictMethods, name);
    forbidden = has(kDictForbidden, name);
  } else if (self.is(Kind::list) &&
             (self.list().kind == ListKind::list || self.list().kind == ListKind::tuple)) {
    allowed = has(kListMethods, name);
    forbidden = self.list().kind == ListKind::list && has(kListForbidden, name);
  }
  return allowed     ? MethodStatus::allowed
         : forbidden ? MethodStatus::forbidden
                     : MethodStatus::unknown;
}

bool is_known_method(std::string_view name) {
  return has(kStringMethods, name) || has(kDictMethods, name) || has(kDictForbidden, name) ||
         has(kListMethods, name) || has(kListForbidden, name) || name == "cycle";
}

Value call_method(Runtime& runtime, const Value& self, std::string_view name,
                  const Arguments& arguments) {
  if (self.is(Kind::loop)) {  // loop.cycle
    if (arguments.positional.empty()) fail_render("loop.cycle() needs an argument");
    return arguments.positional[self.loop().index % arguments.positional.size()];
  }
  if (method_status(self, name) == MethodStatus::forbidden) {
    fail_render(std::string("templates must not change values: ") + self.type_name() + "." +
                std::string(name) + "()");
  }
  if (self.is(Kind::string)) return string_method(runtime, self, name, arguments);
  if (self.is(Kind::dict)) return dict_method(runtime, self.dict(), name, arguments);
  return list_method(runtime, self.list(), name, arguments);
}

}  // namespace fixpoint::engine::jinja
