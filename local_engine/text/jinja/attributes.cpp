// a.name, a[index] and a[start:stop:step].
#include <algorithm>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/unicode.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined(std::string("'") + object.type_name() + " object' has no attribute '" +
                          std::string(name) + "'");
}

Value loop_attribute(const Value& object, std::string_view name) {
  const LoopState& loop = object.loop();
  const std::vector<Value>& items = loop.items.list().items;
  const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
  const std::size_t rest = items.size() - loop.index;
  if (name == "index") return number(loop.index + 1);
  if (name == "index0") return number(loop.index);
  if (name == "revindex") return number(rest);
  if (name == "revindex0") return number(rest - 1);
  if (name == "first") return Value(loop.index == 0);
  if (name == "last") return Value(rest == 1);
  if (name == "length") return number(items.size());
  if (name == "depth") return Value(static_cast<std::int64_t>(loop.depth));
  if (name == "depth0") return Value(static_cast<std::int64_t>(loop.depth - 1));
  if (name == "previtem") {
    return loop.index > 0 ? items[loop.index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return rest > 1 ? items[loop.index + 1] : Value::undefined("there is no next item");
  }
  if (name == "cycle") {
    return Value(std::make_shared<const Callable>(Callable{Method{object, std::string(name)}}));
  }
  return no_attribute(object, name);
}

// What Python calls an attribute: methods and the fields of loop and namespace, not dict entries.
const Value* python_attribute(const Value& object, std::string_view name, Value& made) {
  if (object.is(Kind::name_space)) return object.name_space().find(name);
  if (object.is(Kind::loop)) {
    made = loop_attribute(object, name);
    return made.is(Kind::undefined) ? nullptr : &made;
  }
  if (method_status(object, name) == MethodStatus::unknown) return nullptr;
  made = Value(std::make_shared<const Callable>(Callable{Method{object, std::string(name)}}));
  return &made;
}

// An index counted from the end if negative; false if outside.
bool resolve_index(std::int64_t index, std::size_t size, std::size_t& out) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return false;
  out = static_cast<std::size_t>(index);
  return true;
}

bool is_indexable(const List& list) {
  return list.kind == ListKind::list || list.kind == ListKind::tuple ||
         list.kind == ListKind::range;
}

std::int64_t index_value(const Value& index) {
  return index.is(Kind::boolean) ? static_cast<std::int64_t>(index.boolean()) : index.integer();
}

// Byte offsets of all characters, and the end.
std::vector<std::uint32_t> character_offsets(std::string_view text) {
  std::vector<std::uint32_t> offsets;
  for (std::size_t at = 0; at < text.size();) {
    offsets.push_back(static_cast<std::uint32_t>(at));
    at += decode_code_point(text.substr(at)).size;
  }
  offsets.push_back(static_cast<std::uint32_t>(text.size()));
  return offsets;
}

Value string_item(Runtime& runtime, const std::string& text, std::int64_t index) {
  runtime.charge_text(text.size());
  const std::vector<std::uint32_t> offsets = character_offsets(text);
  std::size_t at = 0;
  if (!resolve_index(index, offsets.size() - 1, at)) {
    return Value::undefined("str object has no element " + std::to_string(index));
  }
  return Value(text.substr(offsets[at], offsets[at + 1] - offsets[at]));
}

struct SliceRange {
  std::int64_t start, stop, step;
};

// Python's rules: negative counts from the end, everything is clamped.
SliceRange resolve_slice(const Value& start, const Value& stop, const Value& step,
                         std::int64_t size) {
  const auto part = [](const Value& value, std::int64_t otherwise) {
    if (value.is(Kind::none)) return otherwise;
    require_defined(value);
    if (!value.is(Kind::integer) && !value.is(Kind::boolean)) {
      fail_render(std::string("slice indices must be integers, not ") + value.type_name());
    }
    return index_value(value);
  };
  SliceRange range{};
  range.step = part(step, 1);
  if (range.step == 0) fail_render("slice step cannot be zero");
  // A step longer than the sequence selects one element; the clamp keeps sums inside 64 bits.
  range.step = std::clamp<std::int64_t>(range.step, -size - 1, size + 1);
  const bool forward = range.step > 0;
  const std::int64_t low = forward ? 0 : -1;
  const std::int64_t high = forward ? size : size - 1;
  const auto clamp = [&](std::int64_t index) {
    if (index < 0) index += size;
    return std::clamp(index, low, high);
  };
  range.start = start.is(Kind::none) ? (forward ? low : high) : clamp(part(start, 0));
  range.stop = stop.is(Kind::none) ? (forward ? high : low) : clamp(part(stop, 0));
  return range;
}

template <class Visit>
void for_each_index(const SliceRange& range, Visit visit) {
  for (std::int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop;
       i += range.step) {
    visit(static_cast<std::size_t>(i));
  }
}

}  // namespace

Value get_attribute(const Value& object, std::string_view name) {
  require_defined(object);
  // The sandbox hides what begins with an underscore.
  if (!name.empty() && name.front() == '_') return no_attribute(object, name);
  Value made;
  if (const Value* found = python_attribute(object, name, made)) return *found;
  if (object.is(Kind::dict)) {
    if (const Value* found = object.dict().find(name)) return *found;
  }
  return no_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& index) {
  require_defined(object);
  if (object.is(Kind::dict)) {
    if (index.is(Kind::list) || index.is(Kind::dict)) check_hashable(index);
    if (const Value* found = object.dict().find(index)) return *found;
  }
  if (index.is(Kind::integer) || index.is(Kind::boolean)) {
    if (object.is(Kind::string)) return string_item(runtime, object.string(), index_value(index));
    std::size_t at = 0;
    if (object.is(Kind::list) && is_indexable(object.list()) &&
        resolve_index(index_value(index), object.list().items.size(), at)) {
      return object.list().items[at];
    }
    return Value::undefined(std::string(object.type_name()) + " object has no element " +
                            std::to_string(index_value(index)));
  }
  if (index.is(Kind::string)) {
    const std::string& name = index.string();
    Value made;
    if (!name.empty() && name.front() != '_') {
      if (const Value* found = python_attribute(object, name, made)) return *found;
    }
    return no_attribute(object, name);
  }
  return Value::undefined(std::string(object.type_name()) + " object has no such element");
}

Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  require_defined(object);
  if (object.is(Kind::string)) {
    const std::string& text = object.string();
    runtime.charge_text(text.size());
    const std::vector<std::uint32_t> offsets = character_offsets(text);
    const auto size = static_cast<std::int64_t>(offsets.size() - 1);
    const SliceRange range = resolve_slice(start, stop, step, size);
    if (range.step == 1) {
      if (range.start >= range.stop) return Value(std::string());
      const std::uint32_t begin = offsets[static_cast<std::size_t>(range.start)];
      const std::uint32_t end = offsets[static_cast<std::size_t>(range.stop)];
      return runtime.make_string(text.substr(begin, end - begin));
    }
    std::string out;
    for_each_index(range, [&](std::size_t at) {
      out.append(text, offsets[at], offsets[at + 1] - offsets[at]);
    });
    return runtime.make_string(std::move(out));
  }
  if (object.is(Kind::list) && is_indexable(object.list())) {
    const List& list = object.list();
    const SliceRange range =
        resolve_slice(start, stop, step, static_cast<std::int64_t>(list.items.size()));
    std::vector<Value> out;
    for_each_index(range, [&](std::size_t at) { out.push_back(list.items[at]); });
    runtime.charge_items(out.size());
    return make_list(std::move(out), list.kind);
  }
  return Value::undefined(std::string("'") + object.type_name() + "' object cannot be sliced");
}

}  // namespace fixpoint::engine::jinja
