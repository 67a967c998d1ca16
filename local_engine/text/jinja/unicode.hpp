// What Python's str methods know about characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::engine::jinja {

bool is_space(char32_t point);      // str.isspace
bool is_printable(char32_t point);  // str.isprintable
bool is_cased_upper(char32_t point);
bool is_cased_lower(char32_t point);

std::size_t count_characters(std::string_view text);
// Views of single characters (an invalid byte is one).
std::vector<std::string_view> characters(std::string_view text);
// Index in characters of a byte offset that lies on a character's border.
std::size_t character_index(std::string_view text, std::size_t byte);

// Full case mappings, as Python does them: one character may become several.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalize(std::string_view text);  // first character in title case, the rest lower
std::string title_case(std::string_view text);  // every word, as str.title

enum class Side { left, right, both };
// Without `set`, white space; else the characters in `set`.
std::string_view strip(std::string_view text, Side side, const std::string_view* set = nullptr);
// At all line ends that Python knows; a line end at the very end begins no further line.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace fixpoint::engine::jinja
