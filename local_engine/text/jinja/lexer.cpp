#include "local_engine/text/jinja/lexer.hpp"

#include <algorithm>

#include "local_engine/text/jinja/error.hpp"
#include "local_engine/text/jinja/unicode.hpp"

namespace fixpoint::engine::jinja {

namespace {

// \r\n and \r become \n; one line end at the very end goes.
std::string normalize_line_ends(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class TemplateScanner {
 public:
  explicit TemplateScanner(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    for (;;) {
      const std::size_t open = find_open();
      if (open == std::string_view::npos) {
        add_text(source_.substr(at_));
        break;
      }
      std::string_view text = source_.substr(at_, open - at_);
      const char kind = source_[open + 1];
      const std::size_t sign_at = open + 2;
      const char sign = sign_at < source_.size() ? source_[sign_at] : '\0';
      const bool signed_open = sign == '-' || sign == '+';
      const std::string_view kept = before_tag(text, kind, sign);
      add_text(kept);
      line_ += count_lines(text.substr(kept.size()));
      at_ = open + (signed_open ? 3 : 2);
      if (kind == '#') {
        skip_comment();
      } else if (kind == '%' && !read_raw()) {
        scan_tag(TokenKind::block_begin, TokenKind::block_end, "%}");
      } else if (kind == '{') {
        scan_tag(TokenKind::variable_begin, TokenKind::variable_end, "}}");
      }
    }
    tokens_.push_back({TokenKind::end, line_, ""});
    return std::move(tokens_);
  }

 private:
  static int count_lines(std::string_view text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  std::size_t find_open() const {
    for (std::size_t at = source_.find('{', at_); at != std::string_view::npos;
         at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() &&
          (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#')) {
        return at;
      }
    }
    return std::string_view::npos;
  }

  // What stays of the text before a tag. `-` strips all white space; else a block tag or comment
  // that has only white space before it on its line strips that, unless marked with `+`.
  std::string_view before_tag(std::string_view text, char kind, char sign) const {
    if (sign == '-') return strip(text, Side::right);
    if (sign == '+' || kind == '{') return text;
    const std::size_t line_end = text.rfind('\n');
    const std::size_t line_begin = line_end == std::string_view::npos ? 0 : line_end + 1;
    if (line_begin == 0 && !at_line_start_) return text;
    const bool blank = strip(text.substr(line_begin), Side::both).empty();
    return blank ? text.substr(0, line_begin) : text;
  }

  // Adjacent texts become one token only in the output, not here: the parser takes any number.
  void add_text(std::string_view text) {
    if (text.empty()) return;
    tokens_.push_back({TokenKind::text, line_, std::string(text)});
    line_ += count_lines(text);
  }

  void scan_tag(TokenKind begin, TokenKind end, std::string_view close) {
    tokens_.push_back({begin, line_, ""});
    TagScanner scanner(source_, at_, line_, tokens_);
    const TagScanner::Close sign = scanner.scan(close);
    tokens_.push_back({end, line_, ""});
    at_line_start_ = false;
    after_tag(sign, end == TokenKind::block_end);
  }

  void after_tag(TagScanner::Close sign, bool trims) {
    const std::size_t begin = at_;
    if (sign == TagScanner::Close::minus) {
      const std::string_view rest = source_.substr(at_);
      at_ += rest.size() - strip(rest, Side::left).size();
    } else if (sign == TagScanner::Close::plain && trims && at_ < source_.size() &&
               source_[at_] == '\n') {
      ++at_;
    }
    at_line_start_ = at_ > begin && source_[at_ - 1] == '\n';
    line_ += count_lines(source_.substr(begin, at_ - begin));
  }

  void skip_comment() {
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) fail("comment without end");
    // `{#-#}`: the sign belongs to the opening and is no closing sign.
    const char before = close > at_ ? source_[close - 1] : '\0';
    line_ += count_lines(source_.substr(at_, close - at_));
    at_ = close + 2;
    after_tag(before == '-'   ? TagScanner::Close::minus
              : before == '+' ? TagScanner::Close::plus
                              : TagScanner::Close::plain,
              true);
  }

  std::size_t skip_space(std::size_t at) const {
    const std::string_view rest = source_.substr(at);
    return at + rest.size() - strip(rest, Side::left).size();
  }

  // If `word` and a closing `%}` or `-%}` (or `+%}` where allowed) stand at `at`, the place after.
  bool match_word_tag(std::size_t& at, std::string_view word, bool allow_plus,
                      TagScanner::Close& sign) const {
    at = skip_space(at);
    if (source_.substr(at, word.size()) != word) return false;
    at = skip_space(at + word.size());
    sign = TagScanner::Close::plain;
    if (source_.substr(at, 1) == "-") {
      sign = TagScanner::Close::minus;
      ++at;
    } else if (allow_plus && source_.substr(at, 1) == "+") {
      sign = TagScanner::Close::plus;
      ++at;
    }
    if (source_.substr(at, 2) != "%}") return false;
    at += 2;
    return true;
  }

  // After `{%`: whether a raw block stands here; if so its text is read.
  bool read_raw() {
    TagScanner::Close sign;
    std::size_t begin = at_;
    if (!match_word_tag(begin, "raw", false, sign)) return false;
    line_ += count_lines(source_.substr(at_, begin - at_));
    at_ = begin;
    after_tag(sign, false);  // the line end after `{% raw %}` stays
    for (std::size_t open = source_.find("{%", at_); open != std::string_view::npos;
         open = source_.find("{%", open + 1)) {
      std::size_t after = open + 2;
      const char open_sign = after < source_.size() ? source_[after] : '\0';
      if (open_sign == '-' || open_sign == '+') ++after;
      if (!match_word_tag(after, "endraw", true, sign)) continue;
      add_raw_text(source_.substr(at_, open - at_), open_sign);
      line_ += count_lines(source_.substr(open, after - open));
      at_ = after;
      after_tag(sign, true);
      return true;
    }
    fail("raw block without end");
  }

  void add_raw_text(std::string_view text, char sign) {
    const std::string_view kept = before_tag(text, '%', sign);
    add_text(kept);
    line_ += count_lines(text.substr(kept.size()));
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw TemplateError(ErrorCode::bad_model_file, message, line_);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string normalized = normalize_line_ends(source);
  return TemplateScanner(normalized).run();
}

}  // namespace fixpoint::engine::jinja
