// Parses the output of print(), line by line.
#include "sym/parse.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "graph/graph.h"
#include "graph/text.h"

namespace cresset::graph {
namespace {

// A cursor in a line. Every take_* skips blanks first and reports success.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  bool peek(std::string_view token) {
    skip_blanks();
    return text_.substr(at_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  // Takes the characters up to a character of `stops` outside all brackets.
  std::string_view take_until(std::string_view stops) {
    skip_blanks();
    const size_t begin = at_;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && stops.find(c) != std::string_view::npos) break;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
    }
    std::string_view found = text_.substr(begin, at_ - begin);
    while (!found.empty() && found.back() == ' ') found.remove_suffix(1);
    return found;
  }
  std::optional<int64_t> take_integer() {
    skip_blanks();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  std::optional<std::string> take_quoted() {
    if (!take("\"")) return std::nullopt;
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return out;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        out += text_[at_] == 'n' ? '\n' : text_[at_];
      } else {
        out += text_[at_];
      }
    }
    return std::nullopt;
  }
  std::string_view rest() {
    skip_blanks();
    return text_.substr(at_);
  }
  size_t column() const { return at_ + 1; }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

template <class Table>
auto lookup(const Table& table, std::string_view text) -> std::optional<decltype(table[0].first)> {
  for (const auto& [key, word] : table)
    if (word == text) return key;
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text)
      : text_(text), graph_(std::make_unique<Graph>(std::make_shared<sym::ShapeEnv>())) {}

  Result<std::unique_ptr<Graph>> parse() {
    while (!text_.empty()) {
      const size_t end = text_.find('\n');
      Line line(text_.substr(0, end));
      text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
      ++number_;
      if (!line.at_end() && !parse_line(line)) return failure(line);
    }
    if (!returned_) expected_ = "a return line";
    if (!returned_) return failure(Line(""));
    return std::move(graph_);
  }

 private:
  Fallback failure(const Line& line) const {
    return {FallbackReason::InvalidArguments,
            fmt::format("graph text, line {}, column {}: expected {}", number_, line.column(), expected_), ""};
  }
  bool expect(bool found, std::string_view what) {
    if (!found) expected_ = what;
    return found;
  }

  bool parse_line(Line& line) {
    if (line.peek("symbol ")) return parse_symbol(line);
    if (line.peek("mutate ")) return parse_mutation(line);
    if (line.peek("return")) return parse_return(line);
    if (line.peek("#")) return parse_comment(line);
    return parse_definition(line);
  }

  // symbol s0 8 [0, inf] dynamic "x.size(0)"      or, at its end: typical 4096
  bool parse_symbol(Line& line) {
    line.take("symbol ");
    const std::string name(line.take_until(" "));
    std::optional<int64_t> hint;
    if (!line.take("?")) {
      hint = line.take_integer();
      if (!expect(hint.has_value(), "a hint or ?")) return false;
    }
    sym::Interval range;
    if (!expect(line.take("[") && parse_bound(line, range.lo) && line.take(",") && parse_bound(line, range.hi) &&
                    line.take("]"),
                "a range [low, high]"))
      return false;
    const auto policy = lookup(text::kPolicies, line.take_until(" "));
    if (!expect(policy.has_value(), "a policy")) return false;
    std::optional<std::string> source = line.take_quoted();
    if (!expect(source.has_value(), "a quoted source")) return false;
    sym::ShapeEnv& env = graph_->env();
    if (hint)
      env.new_backed(std::move(*source), *hint, range, *policy);
    else
      env.new_unbacked(std::move(*source), range);
    const sym::VarId var = symbols_[name] = env.symbols().back().var;
    if (!line.take("typical ")) return true;
    const std::optional<int64_t> typical = line.take_integer();
    if (!expect(typical.has_value(), "a size")) return false;
    env.state_typical(var, *typical);
    return true;
  }
  static bool parse_bound(Line& line, int64_t& out) {
    if (line.take("-inf")) return out = sym::Interval::kNegInf, true;
    if (line.take("inf")) return out = sym::Interval::kPosInf, true;
    const std::optional<int64_t> value = line.take_integer();
    if (value) out = *value;
    return value.has_value();
  }

  // mutate input 0 = %2, mutate constant 3 unseen = %4
  bool parse_mutation(Line& line) {
    line.take("mutate ");
    Mutation mutation{};
    mutation.is_constant = line.take("constant ");
    if (!mutation.is_constant && !expect(line.take("input "), "input or constant")) return false;
    const std::optional<int64_t> position = line.take_integer();
    if (!expect(position.has_value(), "a position")) return false;
    mutation.unseen = line.take("unseen");
    if (!expect(line.take("="), "=")) return false;
    mutation.input = static_cast<uint32_t>(*position);
    if (!parse_value(line, mutation.value)) return false;
    graph_->mutations.push_back(mutation);
    return true;
  }

  bool parse_return(Line& line) {
    line.take("return");
    returned_ = true;
    while (!line.at_end()) {
      if (!graph_->outputs.empty() && !expect(line.take(","), ",")) return false;
      if (!parse_value(line, graph_->outputs.emplace_back())) return false;
    }
    return true;
  }

  // "# model.py:42 in forward" is the location of the nodes below, "#" an unknown location; "#   ..." is for readers.
  bool parse_comment(Line& line) {
    const bool for_people = line.take("#   ");
    if (!for_people) line.take("#");
    if (!for_people) graph_->current_location = line.at_end() ? 0 : graph_->add_location(std::string(line.rest()));
    return true;
  }

  // %3: f32[s0, 64][64, 1], %4: ... = aten::op(...)      or      %0: ... = input "x"
  bool parse_definition(Line& line) {
    std::vector<int64_t> numbers;
    std::vector<TensorType> types;
    while (line.take("%")) {
      const std::optional<int64_t> number = line.take_integer();
      if (!expect(number.has_value() && line.take(":"), "a value number and :")) return false;
      numbers.push_back(*number);
      if (!parse_type(line, types.emplace_back())) return false;
      if (!line.take(",")) break;
    }
    if (!numbers.empty() && !expect(line.take("="), "=")) return false;
    const bool input = line.take("input "), constant = !input && line.take("constant ");
    if (input || constant) return parse_leaf(line, numbers, std::move(types), input);
    return parse_node(line, numbers, std::move(types));
  }

  bool parse_leaf(Line& line, const std::vector<int64_t>& numbers, std::vector<TensorType> types, bool input) {
    std::optional<std::string> name = line.take_quoted();
    if (!expect(name.has_value() && numbers.size() == 1, "one value and a quoted name")) return false;
    values_[numbers[0]] = input ? graph_->add_input(std::move(types[0]), std::move(*name))
                                : graph_->add_constant(std::move(types[0]), std::move(*name));
    return true;
  }

  bool parse_node(Line& line, const std::vector<int64_t>& numbers, std::vector<TensorType> types) {
    std::string op(line.take_until("( "));
    const bool through_aten = op.ends_with('!');
    if (through_aten) op.pop_back();
    const bool caught = op.ends_with('?');
    if (caught) op.pop_back();
    if (!expect(!op.empty() && line.take("("), "an operator and (")) return false;
    std::vector<Arg> args;
    while (!line.take(")")) {
      if (!args.empty() && !expect(line.take(","), ", or )")) return false;
      if (!parse_argument(line, args.emplace_back())) return false;
    }
    const NodeId id = graph_->add_node(op_id(op), std::move(args), std::move(types));
    graph_->node(id).through_aten = through_aten;
    graph_->node(id).caught = caught;
    for (size_t i = 0; i < numbers.size(); ++i) values_[numbers[i]] = graph_->node(id).results[i];
    return true;
  }

  bool parse_type(Line& line, TensorType& type) {
    const auto dtype = parse_dtype(line.take_until("@["));
    if (!expect(dtype.has_value(), "a dtype")) return false;
    type.dtype = *dtype;
    if (line.take("@") && !parse_device(line.take_until("["), type.device)) return false;
    return parse_exprs(line, type.sizes) && parse_exprs(line, type.strides);
  }

  bool parse_device(std::string_view text, Device& device) {
    const size_t colon = text.find(':');
    const auto kind = lookup(text::kDevices, text.substr(0, colon));
    if (!expect(kind.has_value(), "a device")) return false;
    device.kind = *kind;
    if (colon != std::string_view::npos) device.index = static_cast<int8_t>(std::atoi(text.data() + colon + 1));
    return true;
  }

  bool parse_exprs(Line& line, std::vector<ExprId>& out) {
    if (!expect(line.take("["), "[")) return false;
    while (!line.take("]")) {
      if (!out.empty() && !expect(line.take(","), ", or ]")) return false;
      if (!parse_expr(line.take_until(",]"), out.emplace_back())) return false;
    }
    return true;
  }

  bool parse_expr(std::string_view text, ExprId& out) {
    Result<ExprId> e = sym::parse(graph_->pool(), text, [&](std::string_view name) -> std::optional<sym::VarId> {
      const auto it = symbols_.find(std::string(name));
      return it == symbols_.end() ? std::nullopt : std::optional(it->second);
    });
    if (!expect(e.ok(), "an expression")) return false;
    out = *e;
    return true;
  }

  bool parse_value(Line& line, ValueId& out) {
    const std::optional<int64_t> number = line.take("%") ? line.take_integer() : std::nullopt;
    if (!expect(number && values_.contains(*number), "a defined value")) return false;
    line.take("*");  // the mark of a last use
    out = values_[*number];
    return true;
  }

  template <class T, class F>
  bool parse_list(Line& line, std::vector<T>& out, F&& element) {
    while (!line.take(")")) {
      if (!out.empty() && !expect(line.take(","), ", or )")) return false;
      T item{};
      if (!element(item)) return false;
      out.push_back(item);
    }
    return true;
  }

  static std::optional<double> number(std::string_view text) {
    if (text.find_first_of(".einf") == std::string_view::npos) return std::nullopt;
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end != '\0') return std::nullopt;
    return value;
  }

  bool parse_argument(Line& line, Arg& out) {
    if (line.take("none")) return out = None{}, true;
    if (line.take("true")) return out = true, true;
    if (line.take("false")) return out = false, true;
    if (line.peek("%")) return parse_value(line, out.emplace<ValueId>());
    if (line.peek("[")) return parse_exprs(line, out.emplace<std::vector<ExprId>>());
    if (line.peek("\"")) {
      std::optional<std::string> text = line.take_quoted();
      if (text) out = std::move(*text);
      return expect(text.has_value(), "a closing quote");
    }
    if (line.peek("tensors(") || line.peek("floats(") || line.peek("bools(")) return parse_list_argument(line, out);
    const std::string_view word = line.take_until(",)");
    if (const size_t colon = word.find(':'); colon != std::string_view::npos)
      return parse_tagged(word.substr(0, colon), word.substr(colon + 1), out);
    if (const std::optional<double> value = number(word)) return out = *value, true;
    return parse_expr(word, out.emplace<ExprId>());
  }

  bool parse_list_argument(Line& line, Arg& out) {
    if (line.take("floats("))
      return parse_list(line, out.emplace<std::vector<double>>(), [&](double& item) {
        const std::optional<double> value = number(line.take_until(",)"));
        item = value.value_or(0);
        return expect(value.has_value(), "a number");
      });
    if (line.take("bools("))
      return parse_list(line, out.emplace<std::vector<bool>>(), [&](bool& item) {
        item = line.take("true");
        return item || expect(line.take("false"), "true or false");
      });
    line.take("tensors(");
    return parse_list(line, out.emplace<std::vector<OptionalValue>>(),
                      [&](OptionalValue& item) { return line.take("none") || parse_value(line, item.emplace()); });
  }

  bool parse_tagged(std::string_view tag, std::string_view text, Arg& out) {
    if (tag == "dtype") {
      const auto dtype = parse_dtype(text);
      if (dtype) out = *dtype;
      return expect(dtype.has_value(), "a dtype");
    }
    if (tag == "device") return parse_device(text, out.emplace<Device>());
    if (tag == "format") {
      const auto format = lookup(text::kFormats, text);
      if (format) out = *format;
      return expect(format.has_value(), "a memory format");
    }
    out = StridedLayout{};
    return expect(tag == "layout" && text == "strided", "an argument");
  }

  std::string_view text_;
  std::unique_ptr<Graph> graph_;
  std::unordered_map<std::string, sym::VarId> symbols_;
  std::unordered_map<int64_t, ValueId> values_;
  int number_ = 0;
  bool returned_ = false;
  std::string_view expected_;
};

}  // namespace

Result<std::unique_ptr<Graph>> parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace cresset::graph
