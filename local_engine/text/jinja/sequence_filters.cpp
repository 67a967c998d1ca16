// Filters on sequences.
#include <algorithm>

#include "local_engine/text/jinja/filters.hpp"
#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"
#include "local_engine/text/jinja/unicode.hpp"

namespace fixpoint::engine::jinja {

namespace {

Value generator(std::vector<Value> items) {
  return make_list(std::move(items), ListKind::generator);
}

// "a.b.0": attributes one after the other; a part of digits is an index.
Value get_path(Runtime& runtime, Value value, const Value& path) {
  if (path.is(Kind::integer)) return get_item(runtime, value, path);
  if (!path.is(Kind::string)) fail_render("attribute must be a str or an integer");
  std::string_view rest = path.string();
  for (;;) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool digits = !part.empty() && part.size() < 19 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    value = get_item(runtime, value,
                     digits ? Value(static_cast<std::int64_t>(std::stoll(part))) : Value(part));
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

bool given(const std::optional<Value>& value) {
  return value && !value->is(Kind::none);
}

Value length_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("length", {});
  return Value(length(runtime, value));
}

Value list(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("list", {});
  return make_list(iterate(runtime, value));
}

Value first(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("first", {});
  if (value.is(Kind::list)) {
    const List& items = value.list();
    if (items.consumed < items.items.size()) {
      const std::size_t at = items.consumed;
      if (items.kind == ListKind::generator) ++items.consumed;
      return items.items[at];
    }
    return Value::undefined("No first item, sequence was empty.");
  }
  const std::vector<Value> all = iterate(runtime, value);
  return all.empty() ? Value::undefined("No first item, sequence was empty.") : all.front();
}

Value last(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("last", {});
  if (value.is(Kind::list) && value.list().kind == ListKind::generator) {
    fail_render("last needs a sequence, not a generator; use the list filter");
  }
  const std::vector<Value> all = iterate(runtime, value);
  return all.empty() ? Value::undefined("No last item, sequence was empty.") : all.back();
}

Value join(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("join", {"d", "attribute"});
  const std::string separator = bound[0] ? to_str(runtime, *bound[0]) : "";
  std::string out;
  bool is_first = true;
  for (const Value& item : iterate(runtime, value)) {
    if (!is_first) out += separator;
    is_first = false;
    append_str(runtime, out, given(bound[1]) ? get_path(runtime, item, *bound[1]) : item);
    runtime.check_text_size(out.size());
  }
  return runtime.make_string(std::move(out));
}

// The arguments after the first `count` positional ones.
Arguments rest_of(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

const std::string& name_argument(const Arguments& arguments, std::size_t at, const char* what) {
  if (arguments.positional.size() <= at || !arguments.positional[at].is(Kind::string)) {
    fail_render(std::string(what) + " needs a name as a str");
  }
  return arguments.positional[at].string();
}

Value map(Runtime& runtime, const Value& value, const Arguments& arguments) {
  std::vector<Value> out;
  if (arguments.positional.empty()) {
    const auto bound = arguments.bind("map", {"attribute", "default"});
    if (!bound[0]) fail_render("map needs a filter name or an attribute");
    for (const Value& item : iterate(runtime, value)) {
      Value found = get_path(runtime, item, *bound[0]);
      if (bound[1] && found.is(Kind::undefined)) found = *bound[1];
      out.push_back(std::move(found));
    }
    return generator(std::move(out));
  }
  const std::string& name = name_argument(arguments, 0, "map");
  const Filter filter = find_filter(name);
  if (filter == nullptr) {
    throw TemplateError(ErrorCode::unsupported, "filter '" + name + "' is not implemented");
  }
  const Arguments rest = rest_of(arguments, 1);
  for (const Value& item : iterate(runtime, value)) out.push_back(filter(runtime, item, rest));
  return generator(std::move(out));
}

Value choose(Runtime& runtime, const Value& value, const Arguments& arguments, const char* callee,
             bool by_attribute, bool wanted) {
  std::size_t used = 0;
  Value path;
  if (by_attribute) {
    if (arguments.positional.empty()) fail_render(std::string(callee) + " needs an attribute");
    path = arguments.positional[used++];
  }
  Test test = nullptr;
  if (arguments.positional.size() > used) {
    const std::string& name = name_argument(arguments, used++, callee);
    test = find_test(name);
    if (test == nullptr) {
      throw TemplateError(ErrorCode::unsupported, "test '" + name + "' is not implemented");
    }
  }
  const Arguments rest = rest_of(arguments, used);
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, value)) {
    const Value tested = by_attribute ? get_path(runtime, item, path) : item;
    const bool result = test != nullptr ? test(runtime, tested, rest) : truth(tested);
    if (result == wanted) out.push_back(item);
  }
  return generator(std::move(out));
}

Value select(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, "select", false, true);
}
Value reject(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, "reject", false, false);
}
Value selectattr(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, "selectattr", true, true);
}
Value rejectattr(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, "rejectattr", true, false);
}

Value items(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("items", {});
  if (value.is(Kind::undefined)) return generator({});
  if (!value.is(Kind::dict)) fail_render("items needs a dict");
  runtime.charge_items(value.dict().items.size());
  std::vector<Value> out;
  for (const auto& [key, item] : value.dict().items) {
    out.push_back(make_list({key, item}, ListKind::tuple));
  }
  return generator(std::move(out));
}

Value fold_case(const Value& value, bool case_sensitive) {
  return !case_sensitive && value.is(Kind::string) ? Value(to_lower(value.string())) : value;
}

// Sorts `values` by `keys` (same length), stable; also with `reverse`, as Python does.
std::vector<Value> sort_by(Runtime& runtime, const std::vector<Value>& values,
                           const std::vector<Value>& keys, bool reverse) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // A merge sort reads only through the comparison, which may throw; an order that is none (nan)
  // cannot take it outside the range.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reverse ? compare(runtime, keys[b], keys[a]) < 0
                   : compare(runtime, keys[a], keys[b]) < 0;
  });
  std::vector<Value> out;
  for (const std::size_t at : order) out.push_back(values[at]);
  return out;
}

Value sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound[1] && truth(*bound[1]);
  const std::vector<Value> all = iterate(runtime, value);
  std::vector<Value> keys;
  for (const Value& item : all) {
    if (!given(bound[2])) {
      keys.push_back(fold_case(item, case_sensitive));
      continue;
    }
    if (bound[2]->is(Kind::string) && bound[2]->string().find(',') != std::string::npos) {
      throw TemplateError(ErrorCode::unsupported, "sort by several attributes is not implemented");
    }
    keys.push_back(fold_case(get_path(runtime, item, *bound[2]), case_sensitive));
  }
  return make_list(sort_by(runtime, all, keys, bound[0] && truth(*bound[0])));
}

Value dictsort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("dictsort", {"case_sensitive", "by", "reverse"});
  require_defined(value);
  if (!value.is(Kind::dict)) fail_render("dictsort needs a dict");
  const std::string by = bound[1] ? to_str(runtime, *bound[1]) : "key";
  if (by != "key" && by != "value") fail_render("dictsort: by must be 'key' or 'value'");
  const bool case_sensitive = bound[0] && truth(*bound[0]);
  std::vector<Value> pairs;
  std::vector<Value> keys;
  for (const auto& [key, item] : value.dict().items) {
    pairs.push_back(make_list({key, item}, ListKind::tuple));
    keys.push_back(fold_case(by == "key" ? key : item, case_sensitive));
  }
  return make_list(sort_by(runtime, pairs, keys, bound[2] && truth(*bound[2])));
}

Value unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("unique", {"case_sensitive", "attribute"});
  const bool case_sensitive = bound[0] && truth(*bound[0]);
  std::vector<Value> seen;
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, value)) {
    const Value key =
        fold_case(given(bound[1]) ? get_path(runtime, item, *bound[1]) : item, case_sensitive);
    check_hashable(key);
    const bool known = std::any_of(seen.begin(), seen.end(),
                                   [&](const Value& other) { return equal(runtime, key, other); });
    if (known) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return generator(std::move(out));
}

Value reverse(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("reverse", {});
  if (value.is(Kind::string)) {
    return get_slice(runtime, value, Value(), Value(), Value(std::int64_t{-1}));
  }
  std::vector<Value> all = iterate(runtime, value);
  std::reverse(all.begin(), all.end());
  return generator(std::move(all));
}

struct Named {
  std::string_view name;
  Filter filter;
};

constexpr Named kSequenceFilters[] = {
    {"count", length_filter},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length_filter},
    {"list", list},
    {"map", map},
    {"reject", reject},
    {"rejectattr", rejectattr},
    {"reverse", reverse},
    {"select", select},
    {"selectattr", selectattr},
    {"sort", sort},
    {"unique", unique},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  for (const Named& entry : kSequenceFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace fixpoint::engine::jinja
