// Prints an expression in Python's syntax. parse() reads the string back to the same id.
#include <fmt/format.h>

#include "base/check.h"
#include "sym/arith.h"
#include "sym/expr.h"
#include "sym/print_order.h"

namespace cresset::sym {
namespace {

enum Precedence { kOr, kAnd, kRelation, kSum, kProduct, kUnary, kAtom };

class Printer {
 public:
  Printer(const ExprPool& pool, const VarNames& names) : pool_(pool), names_(names) {}

  void print(ExprId id, Precedence at_least) {
    const Precedence own = precedence(id);
    if (own < at_least) out_ += '(';
    print_node(id);
    if (own < at_least) out_ += ')';
  }
  std::string take() { return std::move(out_); }

 private:
  Precedence precedence(ExprId id) const {
    const Expr& e = pool_[id];
    switch (e.kind) {
      case Kind::Const:
        return e.value < 0 ? kUnary : kAtom;
      case Kind::Var:
      case Kind::Min:
      case Kind::Max:
        return kAtom;
      case Kind::Add:
        return kSum;
      case Kind::Mul:
      case Kind::FloorDiv:
      case Kind::Mod:
        return kProduct;
      case Kind::Eq:
      case Kind::Ne:
      case Kind::Lt:
      case Kind::Le:
        return kRelation;
      case Kind::And:
        return kAnd;
      case Kind::Or:
      case Kind::Not:
        return kOr;
    }
    CRESSET_CHECK(false, "unknown kind");
  }

  void print_node(ExprId id) {
    const Expr& e = pool_[id];
    const std::span<const ExprId> operands = pool_.operands(id);
    switch (e.kind) {
      case Kind::Const:
        out_ += fmt::format("{}", e.value);
        return;
      case Kind::Var:
        print_var(VarId{static_cast<uint32_t>(e.value)});
        return;
      case Kind::Add:
      case Kind::Mul: {
        TermList terms;
        pool_.terms(id, terms);
        sort_by_structure(pool_, terms);
        print_sum(terms);
        return;
      }
      case Kind::FloorDiv:
      case Kind::Mod:
        print_chain(operands, e.kind == Kind::Mod ? " % " : "//", kAtom);
        return;
      case Kind::Min:
      case Kind::Max:
        out_ += e.kind == Kind::Min ? "min(" : "max(";
        print_sorted(operands, ", ", kOr);
        out_ += ')';
        return;
      case Kind::Eq:
      case Kind::Ne:
      case Kind::Lt:
      case Kind::Le:
        print_relation(e.kind, operands[0], pool_.const_value(operands[1]));
        return;
      case Kind::And:
        print_sorted(operands, " and ", kRelation);
        return;
      case Kind::Or:
        print_sorted(operands, " or ", kAnd);
        return;
      case Kind::Not:
        out_ += "not ";
        print(operands[0], kRelation);
        return;
    }
  }

  void print_var(VarId var) {
    const auto it = names_.find(var);
    out_ += it == names_.end() || it->second.empty() ? fmt::format("v{}", var.index) : it->second;
  }

  void print_chain(std::span<const ExprId> operands, std::string_view separator, Precedence at_least) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i > 0) out_ += separator;
      print(operands[i], at_least);
    }
  }

  void print_sorted(std::span<const ExprId> operands, std::string_view separator, Precedence at_least) {
    ExprList sorted;
    sorted.assign(operands);
    sort_by_structure(pool_, sorted);
    print_chain(sorted, separator, at_least);
  }

  // `tight`: a unary minus precedes, and binds closer than any operator of the term.
  void print_magnitude(const Term& term, bool tight) {
    const int64_t c = term.coefficient;
    const uint64_t magnitude = c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
    if (!term.monomial.valid()) {
      out_ += fmt::format("{}", magnitude);
      return;
    }
    if (magnitude != 1) out_ += fmt::format("{}*", magnitude);
    const std::span<const ExprId> factors = pool_.factors(term.monomial);
    print_sorted(factors, "*", factors.size() == 1 && magnitude == 1 && !tight ? kProduct : kAtom);
  }

  void print_sum(const TermList& terms) {
    if (terms.empty()) out_ += '0';
    for (size_t i = 0; i < terms.size(); ++i) {
      const bool minus = terms[i].coefficient < 0;
      if (i > 0) {
        out_ += minus ? " - " : " + ";
      } else if (minus) {
        out_ += '-';
      }
      print_magnitude(terms[i], i == 0 && minus);
    }
  }

  // Prints sum (kind) bound with negative terms on the other side: s0 - s1 <= -1 prints as s0 < s1.
  void print_relation(Kind kind, ExprId sum, int64_t bound) {
    TermList all, left, right;
    pool_.terms(sum, all);
    sort_by_structure(pool_, all);
    if (kind != Kind::Le && all[0].coefficient < 0) {  // an equation may be read from either side
      for (Term& term : all) term.coefficient = saturating_neg(term.coefficient);
      bound = saturating_neg(bound);
    }
    for (const Term& term : all) {
      const Term magnitude{term.monomial, term.coefficient < 0 ? saturating_neg(term.coefficient) : term.coefficient};
      (term.coefficient < 0 ? right : left).push_back(magnitude);
    }
    std::string_view op = kind == Kind::Eq ? " == " : kind == Kind::Ne ? " != " : " <= ";
    if (left.empty()) {  // -right <= bound
      if (kind == Kind::Le) op = " >= ";
      for (const Term& term : right) left.push_back(term);
      right.clear();
      bound = saturating_neg(bound);
    } else if (kind == Kind::Le && bound == -1 && !right.empty()) {
      op = " < ";
      bound = 0;
    }
    if (bound < 0 && !right.empty()) {
      left.push_back({ExprId{}, saturating_neg(bound)});
    } else if (bound != 0 || right.empty()) {
      right.push_back({ExprId{}, bound});
    }
    print_sum(left);
    out_ += op;
    print_sum(right);
  }

  const ExprPool& pool_;
  const VarNames& names_;
  std::string out_;
};

}  // namespace

std::string to_string(const ExprPool& pool, ExprId id, const VarNames& names) {
  Printer printer(pool, names);
  printer.print(id, kOr);
  return printer.take();
}

}  // namespace cresset::sym
