"""The texts of the tokenizer golden files: (name, text). Each text is there for a reason that its
name gives.

Characters that an editor could normalise or hide are written as escapes.
"""

ENGLISH = [
    ("empty", ""),
    ("one_letter", "a"),
    ("one_space", " "),
    ("hello", "Hello, world!"),
    ("leading_space", " Hello"),
    ("trailing_space", "Hello "),
    ("pangram", "The quick brown fox jumps over the lazy dog."),
    (
        "paragraph",
        "A gateway sits between a program and a model. It remembers what was asked, and it answers "
        "the same question with the same words.\n\nThat is all it does; the rest is care.",
    ),
    ("shouting", "WHY IS EVERYTHING IN CAPITAL LETTERS TODAY?"),
    ("camel_snake", "parseHttpRequest parse_http_request ParseHTTPRequest PARSE_HTTP_REQUEST"),
    ("long_word", "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis"),
    ("hyphens", "state-of-the-art, well-known, e-mail -- and an em\u2014dash"),
    ("quotes", '\u201cCurly,\u201d she said, \u2018not "straight"\u2019.'),
    ("repeated_letter", "a" * 70),
    ("repeated_word", "no no no no no no no no"),
    ("letters_digits", "abc123def456 B2B mp3 x86_64 v1.2.3-rc4"),
]

CONTRACTIONS = [
    ("lower", "I'm sure they're here, we've seen it, he'll say it's what I'd do, isn't it?"),
    ("upper", "I'M SURE THEY'RE HERE, WE'VE SEEN IT, HE'LL SAY IT'S WHAT I'D DO, ISN'T IT?"),
    ("mixed_case", "I'm I'M it's IT'S we'Re wE'rE they'Ll ThEy'lL i'Ve i'D"),
    ("curly_apostrophe", "I\u2019m sure they\u2019re here, isn\u2019t it?"),
    ("apostrophes_alone", "' '' ''' 's 't 're 'x '1 's' 'll'"),
    ("apostrophe_then_word", "'sample 'tis 'twas 'redo 'velvet 'many 'llama 'day"),
    ("after_punctuation", "(it)'s [we]'ve \"they\"'re 5's 90's A's"),
    ("long_s_after_apostrophe", "it'\u017f IT'\u017fO"),
    ("possessive", "James' book, the dogs' tails, O'Brien's pub, rock 'n' roll"),
]

WHITESPACE = [
    ("two_spaces", "a  b"),
    ("many_spaces", "a" + " " * 7 + "b" + " " * 16 + "c"),
    ("only_spaces", " " * 12),
    ("only_newlines", "\n\n\n\n"),
    ("tabs", "\tone\t\ttwo\t\t\tthree\t"),
    ("tab_space_mix", " \t \t  x \t y\t "),
    ("crlf", "line one\r\nline two\r\n\r\nline four\r\n"),
    ("cr", "line one\rline two\r\rline four"),
    ("newline_then_indent", "if x:\n    y = 1\n        z = 2\n\n\n  done"),
    ("space_before_newline", "end of line  \nnext line \n \n   \n  last"),
    ("trailing_newlines", "text\n\n"),
    ("punctuation_newline", "so:\n-one;\n-two!\n\n(three)\n"),
    ("nbsp", "10\u00a0km, a\u00a0\u00a0b \u00a0c\u00a0 d"),
    ("unicode_spaces", "a\u2003b\u2009c\u3000d\u202fe\u205ff\u1680g\u2028h\u2029i\u0085j"),
    ("vertical_tab_form_feed", "a\x0bb\x0cc\x0b\x0c d"),
    ("mongolian_vowel_separator", "a\u180eb \u180e c\u180e\u180ed"),
    ("zero_width", "a\u200bb\u200cc\u200dd\u2060e\ufefff"),
    ("byte_order_mark", "\ufeffHello"),
    ("information_separators", "a\x1cb\x1dc\x1ed\x1fe"),
]

NUMBERS = [
    ("digits", "0 1 12 123 1234 12345 123456 1234567"),
    ("phone", "+1 (555) 010-9999"),
    ("decimal", "3.14159, 2,718,281 and 1e-10; -40; 50%; $9.99"),
    ("date_time", "2024-02-29T23:59:60Z"),
    ("hex", "0xDEADBEEF 0b1010 0o777"),
    ("no_space", "call911now 4ever a1b2c3"),
    ("vulgar_fractions", "\u00bd cup, x\u00b2 + y\u00b3, \u2167 \u2463 \u00be"),
    ("arabic_indic_digits", "\u0661\u0662\u0663\u0664 \u06f5\u06f6\u06f7"),
    ("devanagari_digits", "\u0967\u0968\u0969\u096a\u096b"),
    ("fullwidth_digits", "\uff11\uff12\uff13\uff14"),
    ("mathematical_digits", "\U0001d7ce\U0001d7cf\U0001d7d0\U0001d7d1 bold"),
    ("long_number", "31415926535897932384626433832795028841971693993751"),
    ("ip_and_version", "127.0.0.1:8080 v10.20.30 ::1"),
]

CODE = [
    ("python", "def fib(n: int) -> int:\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"),
    (
        "cpp",
        "#include <vector>\nstd::vector<int> v{1, 2, 3};\nfor (auto&& x : v) { x <<= 2; }  // shift\n",
    ),
    ("json", '{"name": "fix\\npoint", "list": [1, 2.5, null, true], "nested": {"k": []}}'),
    ("html", '<div class="a b"><p>Hi &amp; bye</p><!-- no --></div>'),
    ("shell", "for f in *.txt; do echo \"$f\" | sed 's/a/b/g' >> out.log 2>&1; done"),
    ("sql", "SELECT id, COUNT(*) FROM t WHERE a <> 'x' AND b IS NOT NULL GROUP BY id;"),
    ("url", "https://example.org/a/b?q=1&r=%20x#frag user@example.org"),
    ("path", "C:\\Users\\me\\file.txt /usr/lib/x86_64-linux-gnu/libc.so.6 ../../a"),
    ("regex", r"^(?:\d{3}|[A-Za-z_]\w*)\s*(?=\S)$"),
    ("operators", "a!=b==c>=d<=e&&f||g??h?.i:=j->k::l**m//n"),
    (
        "markdown",
        "# Title\n\n- **bold**, *it*, `code`\n1. [link](x)\n\n```c\nint x;\n```\n| a | b |\n|---|---|\n",
    ),
    ("latex", "\\frac{a}{b} + \\sum_{i=0}^{n} x_i^2 \\leq \\alpha"),
    ("diff", "@@ -1,3 +1,3 @@\n-old line\n+new line\n unchanged\n"),
    ("makefile", "all: a.o b.o\n\tcc -o $@ $^\n\n.PHONY: all\n"),
    ("brackets", "((([[[{{{}}}]]])))"),
    ("punctuation_run", "!!! ??? ... ,,, ;;; --- === *** ### @@@ $$$ %%% ^^^ &&& ~~~"),
    ("punctuation_then_word", "...then !now ?why #tag @me $x %y &z *w"),
    ("escapes_in_text", "a\\nb \\t \\\\ \\u00e9 \\x41"),
]

LANGUAGES = [
    (
        "french",
        "L'\u00e9t\u00e9 o\u00f9 nous \u00e9tions l\u00e0, qu'est-ce qu'il a dit\u00a0? \u00ab\u00a0\u00c7a va\u00a0\u00bb",
    ),
    (
        "german",
        "Stra\u00dfe, \u00c4pfel, GR\u00d6SSE, Donaudampfschifffahrtsgesellschaftskapit\u00e4n",
    ),
    ("spanish", "\u00bfD\u00f3nde est\u00e1 el ni\u00f1o? \u00a1All\u00ed!"),
    ("polish", "Za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144"),
    ("turkish", "\u0130stanbul'da \u0131\u015f\u0131k, i\u015f'te"),
    ("vietnamese", "Ti\u1ebfng Vi\u1ec7t c\u00f3 d\u1ea5u"),
    (
        "russian",
        "\u0421\u044a\u0435\u0448\u044c \u0436\u0435 \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u043c\u044f\u0433\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a",
    ),
    (
        "greek",
        "\u039e\u03b5\u03c3\u03ba\u03b5\u03c0\u03ac\u03b6\u03c9 \u03c4\u1f74\u03bd \u03c8\u03c5\u03c7\u03bf\u03c6\u03b8\u03cc\u03c1\u03b1",
    ),
    (
        "hebrew",
        "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd! \u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u05d9\u05ea",
    ),
    (
        "arabic",
        "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0643\u0650\u062a\u064e\u0627\u0628\u064c \u0661\u0662",
    ),
    ("persian", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u06a9\u062a\u0627\u0628"),
    (
        "hindi",
        "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e, \u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f\u0964",
    ),
    ("tamil", "\u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd \u0b89\u0bb2\u0b95\u0bae\u0bcd"),
    (
        "thai",
        "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e17\u0e35\u0e48\u0e19\u0e35\u0e48 \u0e52\u0e55\u0e56\u0e57",
    ),
    (
        "chinese",
        "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u662f2024\u5e745\u67083\u65e5\u3002",
    ),
    (
        "japanese",
        "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3001\u30ab\u30bf\u30ab\u30ca\u30fc\u3068\u6f22\u5b57\u3002\uff8a\uff9d\uff76\uff78",
    ),
    ("korean", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4! \ud55c\uad6d\uc5b4"),
    ("ideographs_plane_2", "\U00020bb7\u91ce\u5bb6 \U0002a6d6"),
    (
        "georgian_armenian",
        "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0 \u0532\u0561\u0580\u0587",
    ),
    (
        "mixed_scripts",
        "Hello\u4e16\u754c\u043c\u0438\u0440\u0645\u0631\u062d\u0628\u0627 123\u0e2a\u0e27\u0e31",
    ),
    ("fullwidth_latin", "\uff28\uff45\uff4c\uff4c\uff4f\u3000\uff37\uff4f\uff52\uff4c\uff44\uff01"),
    ("gothic", "\U00010330\U00010331\U00010332 \U00010400"),
]

MARKS = [
    ("precomposed", "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m"),
    ("decomposed", "cafe\u0301 nai\u0308ve A\u030angstro\u0308m"),
    ("stacked_marks", "Z\u0351\u036b\u0343a\u0346\u0312l\u030d\u0327g\u0304o\u0321"),
    ("mark_first", "\u0301e \u0301 x"),
    ("mark_order", "q\u0307\u0323 q\u0323\u0307"),
    ("hangul_jamo", "\u1112\u1161\u11ab\u1100\u1173\u11af"),
    ("singletons", "\u212b \u2126 \u212a \u1e9b\u0323 \ufb01"),
    ("composition_exclusions", "\u0958 \u2adc \u0344"),
]

EMOJI = [
    ("simple", "I \u2764 you \U0001f600\U0001f680 ok\U0001f44d"),
    ("variation_selector", "\u2764\ufe0f \u263a\ufe0f 1\ufe0f\u20e3 #\ufe0f\u20e3"),
    ("skin_tone", "\U0001f44b\U0001f3fd \U0001f9d1\U0001f3ff"),
    ("zwj_family", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 ok"),
    ("zwj_profession", "\U0001f469\U0001f3fe\u200d\U0001f680 \U0001f3f4\u200d\u2620\ufe0f"),
    (
        "flags",
        "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    ),
    ("between_words", "fire\U0001f525water\U0001f4a7 x\U0001f600y"),
]

OTHER = [
    ("symbols", "\u00a9 \u2122 \u20ac \u00a3 \u2192 \u2260 \u221e \u2713 \u25a0 \u00b0C \u00b5m"),
    ("box_drawing", "\u250c\u2500\u2510\n\u2502x\u2502\n\u2514\u2500\u2518"),
    ("private_use_and_unassigned", "\ue000\uf8ff\u0378 \U000f0000"),
    ("noncharacters", "\ufffe\uffff \ufffd"),
    ("control_characters", "a\x00b\x01c\x07d\x08e\x1bf\x7fg\u0080h"),
    # SmolLM2's vocabulary has no token for the bytes 04 06 13 14 16 1d (nor for F1 and F2, first
    # bytes of planes 4 to 11): `tokenizers` leaves them out and, inside one piece, joins what
    # stands on their two sides.
    ("bytes_without_token", "the\x04re \x16 in\x04g x !\x04= y"),
    ("plane_4", "x\U00040000y"),
    ("modifier_letters", "\u02b0\u02b2\u02b7 n\u02bco \u1d2c"),
    ("title_case_and_other_letters", "\u01c5 \u01c8 \u00aa \u00ba \u05d0"),
    ("base64", "SGVsbG8sIHdvcmxkIQ== +/+/ QUJDREVGRw"),
    ("log_line", "[2024-05-01 12:00:00,123] WARN  main.cpp:42  retry=3 took 1.5ms"),
]

SPECIALS = [
    ("chat", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
    ("alone", "<|im_end|>"),
    ("doubled", "<|im_start|><|im_start|><|im_end|><|im_end|>"),
    ("inside_word", "foo<|im_end|>bar <|endoftext|> baz"),
    ("spaces_around", "  <|im_start|>  \n <|im_end|>\n\n"),
    ("broken", "<|im_start| <|im_end|>> <<|im_end|> <|IM_END|> |im_end|"),
    ("contraction_across", "it<|im_end|>'s don<|im_end|>'t"),
    ("digits_across", "12<|im_end|>34"),
    ("prefix_of_another", "<file_sep> <filename> <filenames> <|end|><|end|>+ <|end|>+<|end|>"),
    ("all_kinds", "<repo_name>a<reponame>b<file_sep>c<gh_stars>1<issue_start>x<empty_output>"),
    ("decomposed_before", "cafe\u0301<|im_end|>e\u0301"),
]

# Words that the small vocabulary of tiny_bpe holds without a merge that makes them: only a
# tokenizer that looks the whole piece up first (ignore_merges, as llama-bpe has it) finds them.
WHOLE_PIECES = [
    ("known_as_a_whole", "zyxwv zyxwv, Zyxwv zyxwvu qjqjq"),
]

GROUPS = {
    "english": ENGLISH,
    "contraction": CONTRACTIONS,
    "whitespace": WHITESPACE,
    "number": NUMBERS,
    "code": CODE,
    "language": LANGUAGES,
    "marks": MARKS,
    "emoji": EMOJI,
    "other": OTHER,
    "special": SPECIALS,
    "vocabulary": WHOLE_PIECES,
}

TEXTS = [(f"{group}/{name}", text) for group, texts in GROUPS.items() for name, text in texts]
