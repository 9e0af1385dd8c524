// Prints a graph. Values are numbered by first definition, so removed nodes do not influence the output.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/canonical.h"
#include "graph/graph.h"
#include "graph/source_text.h"
#include "graph/text.h"

namespace cresset::graph {

std::string text::quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

class Printer {
 public:
  explicit Printer(const Graph& graph, std::span<const CallBetween> between = {})
      : graph_(graph), between_(between), names_(graph.env().names()), numbers_(graph.value_count()) {}

  std::string canonical() {
    canonical_ = true;
    sym::ShapeEnv& env = graph_.env();
    for (const sym::Symbol& s : env.symbols()) {
      const ExprId now = env.simplify(graph_.pool().var(s.var));
      if (graph_.pool().is_const(now)) pinned_.emplace(s.var, now);
    }
    const std::string nodes = print();
    return nodes + facts();
  }

  std::string print() {
    if (!canonical_) find_last_uses();
    for (const sym::Symbol& symbol : graph_.env().symbols())
      if (!canonical_) print_symbol(symbol);
    for (const ValueId v : graph_.inputs) print_leaf(v, "input");
    for (const ValueId v : graph_.constants) print_leaf(v, "constant");
    for (size_t i = 0; i <= graph_.order.size(); ++i) {
      for (const CallBetween& call : between_)
        if (call.position == i) print_call(call);
      if (i == graph_.order.size()) break;
      if (!canonical_) print_location(graph_.node(graph_.order[i]).location);
      print_node(graph_.node(graph_.order[i]));
    }
    for (const Mutation& m : graph_.mutations) {
      out_ +=
          fmt::format("mutate {} {}{} = ", m.is_constant ? "constant" : "input", m.input, m.unseen ? " unseen" : "");
      value(m.value);
      out_ += '\n';
    }
    out_ += "return";
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      out_ += i == 0 ? " " : ", ";
      value(graph_.outputs[i]);
    }
    out_ += '\n';
    return std::move(out_);
  }

 private:
  static std::string bound(int64_t b) {
    if (b == sym::Interval::kNegInf) return "-inf";
    return b == sym::Interval::kPosInf ? "inf" : fmt::format("{}", b);
  }

  static std::string typical(const sym::Symbol& s) { return s.typical ? fmt::format(" typical {}", *s.typical) : ""; }

  void print_symbol(const sym::Symbol& s) {
    out_ += fmt::format("symbol {} {} [{}, {}] {} {}{}\n", s.name, s.hint ? fmt::format("{}", *s.hint) : "?",
                        bound(s.range.lo), bound(s.range.hi), text::word(text::kPolicies, s.policy),
                        text::quoted(s.source), typical(s));
  }

  // The facts about used symbols, in an order independent of the order in which they were recorded.
  std::string facts() {
    std::set<std::string> conditions;
    const auto add = [&](ExprId condition) {
      condition = graph_.pool().substitute(condition, pinned_);
      if (!graph_.pool().is_const(condition)) conditions.insert(sym::to_string(graph_.pool(), condition, names_));
    };
    for (const sym::SizeGuard& guard : graph_.env().guards()) add(guard.condition);
    for (const sym::RuntimeAssertion& assertion : graph_.env().assertions()) add(assertion.condition);
    std::string out;
    std::set<std::string> symbols;
    for (const sym::Symbol& s : graph_.env().symbols()) {
      if (used_.count(s.var) == 0) continue;
      symbols.insert(fmt::format("symbol {} {} [{}, {}]{}\n", s.name, s.hint ? "given" : "data", bound(s.range.lo),
                                 bound(s.range.hi), typical(s)));
    }
    for (const std::string& line : symbols) out += line;
    for (const std::string& line : conditions) out += "where " + line + '\n';
    return out;
  }

  void print_leaf(ValueId v, std::string_view what) {
    definition(v);
    out_.append(" = ").append(what) += ' ';
    if (!canonical_) out_ += text::quoted(graph_.value(v).name);
    out_ += '\n';
  }

  // Finds the last use of each value, as the address of an argument list. Outputs and written values have no last use.
  void find_last_uses() {
    last_uses_.resize(graph_.value_count());
    const auto use = [&](const std::vector<Arg>& args) {
      Graph::for_each_value(args, [&](ValueId v) {
        if (v.index < last_uses_.size()) last_uses_[v.index] = &args;
      });
    };
    for (size_t i = 0; i <= graph_.order.size(); ++i) {
      for (const CallBetween& call : between_)
        if (call.position == i) use(*call.args);
      if (i < graph_.order.size()) use(graph_.node(graph_.order[i]).args);
    }
    const auto lives_on = [&](ValueId v) {
      if (v.index < last_uses_.size()) last_uses_[v.index] = nullptr;
    };
    for (const ValueId v : graph_.outputs) lives_on(v);
    for (const Mutation& m : graph_.mutations) lives_on(m.value);
  }

  // Printed above the first node of a source line.
  void print_location(uint32_t location) {
    if (location == location_ || location >= graph_.locations.size()) return;
    location_ = location;
    const std::string& where = graph_.locations[location];
    out_ += where.empty() ? "#\n" : "# " + where + '\n';
    if (const std::string line = text::source_line(where); !line.empty()) out_ += "#   " + line + '\n';
  }

  void print_node(const Node& node) {
    list(node.results, [&](ValueId v) { definition(v); });
    if (!node.results.empty()) out_ += " = ";
    out_ += op_name(node.op);
    if (node.caught) out_ += '?';
    if (node.through_aten) out_ += '!';
    arguments(node.args);
    out_ += '\n';
  }

  void print_call(const CallBetween& call) {
    out_ += "#   ";
    list(call.made, [&](ValueId v) { value(v); });
    if (!call.made.empty()) out_ += " = ";
    out_ += op_name(call.op);
    arguments(*call.args);
    out_ += ", then the rest\n";
  }

  void arguments(const std::vector<Arg>& args) {
    at_ = &args;
    listed("(", args, ")", [&](const Arg& arg) { argument(arg); });
  }

  void definition(ValueId v) {
    if (numbers_[v.index] == 0) numbers_[v.index] = ++defined_;
    const TensorType& type = graph_.type(v);
    value(v);
    out_.append(": ").append(to_string(type.dtype));
    if (type.device != Device{}) out_.append("@").append(device(type.device));
    exprs(type.sizes);
    exprs(type.strides);
  }

  // Prints "%3", or "%?17" for a value without a definition above: the graph is broken.
  void value(ValueId v) {
    const bool defined = v.index < numbers_.size() && numbers_[v.index] != 0;
    const fmt::format_int number(defined ? numbers_[v.index] - 1 : v.index);
    out_.append(defined ? "%" : "%?").append(number.data(), number.size());
  }

  void use(ValueId v) {
    value(v);
    if (v.index < last_uses_.size() && last_uses_[v.index] == at_) out_ += '*';
  }

  static std::string device(Device d) {
    std::string out(text::word(text::kDevices, d.kind));
    if (d.index >= 0) out += fmt::format(":{}", d.index);
    return out;
  }

  void expr(ExprId e) {
    const auto [known, fresh] = texts_.try_emplace(e);
    if (fresh) known->second = expr_text(e);
    out_ += known->second;
  }
  std::string expr_text(ExprId e) {
    if (!canonical_ || graph_.pool().is_const(e)) return sym::to_string(graph_.pool(), e, names_);
    e = graph_.pool().substitute(e, pinned_);
    std::vector<sym::VarId> vars;
    graph_.pool().collect_vars(e, vars);
    used_.insert(vars.begin(), vars.end());
    return sym::to_string(graph_.pool(), e, names_);
  }
  void exprs(const std::vector<ExprId>& all) {
    listed("[", all, "]", [&](ExprId e) { expr(e); });
  }

  template <class List, class F>
  void list(const List& items, F&& print) {
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ", ";
      first = false;
      print(item);
    }
  }

  template <class List, class F>
  void listed(const char* open, const List& items, const char* close, F&& print) {
    out_ += open;
    list(items, print);
    out_ += close;
  }

  // A point, an exponent or a word distinguishes a double from an integer.
  static std::string number(double d) {
    if (std::isnan(d)) return "nan";
    std::string out = fmt::format("{}", d);
    if (out.find_first_of(".einf") == std::string::npos) out += ".0";
    return out;
  }
  static const char* truth(bool b) { return b ? "true" : "false"; }

  void argument(const Arg& arg) {
    std::visit(
        Overloaded{
            [&](None) { out_ += "none"; },
            [&](ValueId v) { use(v); },
            [&](const std::vector<OptionalValue>& all) {
              listed("tensors(", all, ")", [&](OptionalValue v) { v ? use(*v) : void(out_ += "none"); });
            },
            [&](ExprId e) { expr(e); },
            [&](const std::vector<ExprId>& all) { exprs(all); },
            [&](double d) { out_ += number(d); },
            [&](bool b) { out_ += truth(b); },
            [&](const std::vector<double>& all) { listed("floats(", all, ")", [&](double d) { out_ += number(d); }); },
            [&](const std::vector<bool>& all) { listed("bools(", all, ")", [&](bool b) { out_ += truth(b); }); },
            [&](const std::string& text) { out_ += text::quoted(text); },
            [&](DType d) { out_.append("dtype:").append(to_string(d)); },
            [&](Device d) { out_.append("device:").append(device(d)); },
            [&](MemoryFormat f) { out_.append("format:").append(text::word(text::kFormats, f)); },
            [&](StridedLayout) { out_ += "layout:strided"; },
        },
        arg);
  }

  const Graph& graph_;
  std::span<const CallBetween> between_;
  sym::VarNames names_;
  std::vector<uint32_t> numbers_;  // printed number + 1; 0: not yet defined
  uint32_t defined_ = 0;
  std::vector<const std::vector<Arg>*> last_uses_;  // by value; empty: last uses are not marked
  const std::vector<Arg>* at_ = nullptr;            // the arguments being printed
  uint32_t location_ = 0;                           // the last printed location
  bool canonical_ = false;
  std::unordered_map<sym::VarId, ExprId> pinned_;  // canonical: specialized symbols and their constants
  std::set<sym::VarId> used_;                      // canonical: symbols used by the graph
  std::unordered_map<ExprId, std::string> texts_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, std::span<const CallBetween> between) { return Printer(graph, between).print(); }
std::string canonical_text(const Graph& graph) { return Printer(graph).canonical(); }

}  // namespace cresset::graph
