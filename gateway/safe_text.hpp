// Text of others (prompts, answers, peers' messages) made safe for a terminal and for one log line.
#pragma once

#include <string>
#include <string_view>

namespace fixpoint {

// Control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls and bytes
// that are not UTF-8 become escapes: \n, \t, \x1b, \u202e. A backslash is doubled, so that the text
// can be told from an escape. Everything else stays.
std::string safe_text(std::string_view text);

}  // namespace fixpoint
