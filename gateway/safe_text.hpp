// Text of others (prompts, answers, peers' messages) made safe for a terminal and for one log line.
#pragma once

#include <string>
#include <string_view>

namespace fixpoint {

// Control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls and bytes
// that are not UTF-8 become escapes: \n, \t, \x1b, \u202e. A backslash is doubled, so that the text
// can be told from an escape. Everything else stays.
std::string safe_text(std::string_view text);

bool is_utf8(std::string_view text);

// Appends the text as a JSON string, quotes included, that decodes to the text itself: what
// safe_text() escapes is escaped here in JSON's way; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace fixpoint
