#include "sym/size_program.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "sym/arith.h"

namespace cresset::sym {
namespace {

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

class Builder {
 public:
  using Slots = std::unordered_map<VarId, uint32_t>;
  using Instr = SizeProgram::Instr;

  Builder(const ExprPool& pool, const Slots& slot_of, std::vector<Instr>& out)
      : pool_(pool), slot_of_(slot_of), out_(out) {}

  uint32_t emit(ExprId id) {
    if (const auto it = register_of_.find(id); it != register_of_.end()) return it->second;
    const uint32_t result = emit_node(id);
    register_of_.emplace(id, result);
    return result;
  }

 private:
  uint32_t push(Instr instr) {
    out_.push_back(instr);
    return static_cast<uint32_t>(out_.size() - 1);
  }

  uint32_t emit_constant(int64_t value) {
    const auto [it, inserted] = constant_.try_emplace(value, static_cast<uint32_t>(out_.size()));
    if (inserted) push({Kind::Const, 0, 0, value});
    return it->second;
  }

  uint32_t push_scaled(uint32_t operand, int64_t coefficient) {
    if (coefficient == 1) return operand;
    return push({Kind::Mul, operand, emit_constant(coefficient), 0});
  }

  uint32_t emit_var(VarId var) {
    const auto it = slot_of_.find(var);
    CRESSET_CHECK(it != slot_of_.end(), "a size program's variable has no slot");
    return push({Kind::Var, it->second, 0, 0});
  }

  uint32_t emit_node(ExprId id) {
    const Expr& e = pool_[id];
    switch (e.kind) {
      case Kind::Const:
        return emit_constant(e.value);
      case Kind::Var:
        return emit_var(VarId{static_cast<uint32_t>(e.value)});
      case Kind::Add: {
        TermList terms;
        pool_.terms(id, terms);
        return emit_sum(terms);
      }
      case Kind::Eq:
      case Kind::Ne:
      case Kind::Lt:
      case Kind::Le:
        return emit_relation(e.kind, pool_.operands(id)[0], pool_.const_value(pool_.operands(id)[1]));
      case Kind::Mul:
        if (e.value == 1) return emit_chain(Kind::Mul, pool_.operands(id));
        return push_scaled(emit(e.monomial), e.value);
      case Kind::FloorDiv:
      case Kind::Mod:
      case Kind::Min:
      case Kind::Max:
      case Kind::And:
      case Kind::Or:
      case Kind::Not:
        return emit_chain(e.kind, pool_.operands(id));
    }
    CRESSET_CHECK(false, "unknown kind");
  }

  uint32_t emit_chain(Kind kind, std::span<const ExprId> operands) {
    uint32_t result = emit(operands[0]);
    for (const ExprId operand : operands.subspan(1)) {
      const uint32_t next = emit(operand);
      result = push({kind, result, next, 0});
    }
    return result;
  }

  // Starts from a term without multiplication; each further term is a multiply-add.
  uint32_t emit_sum(const TermList& terms) {
    if (terms.empty()) return emit_constant(0);
    size_t first = terms.size() - 1;
    for (size_t i = terms.size(); i-- > 0;) {
      if (terms[i].coefficient == 1 || !terms[i].monomial.valid()) first = i;
    }
    uint32_t result = terms[first].monomial.valid() ? push_scaled(emit(terms[first].monomial), terms[first].coefficient)
                                                    : emit_constant(terms[first].coefficient);
    for (size_t i = 0; i < terms.size(); ++i) {
      if (i == first) continue;
      const bool is_constant = !terms[i].monomial.valid();
      const uint32_t operand = is_constant ? emit_constant(terms[i].coefficient) : emit(terms[i].monomial);
      result = push({Kind::Add, result, operand, is_constant ? 1 : terms[i].coefficient});
    }
    return result;
  }

  // Negative terms go to the other side, so no negation is computed.
  uint32_t emit_relation(Kind kind, ExprId sum, int64_t bound) {
    TermList all, left, right;
    pool_.terms(sum, all);
    for (const Term& term : all) {
      if (term.coefficient > 0) {
        left.push_back(term);
      } else {
        right.push_back({term.monomial, saturating_neg(term.coefficient)});
      }
    }
    if (left.empty()) left.push_back({ExprId{}, saturating_neg(bound)}), bound = 0;
    const uint32_t lhs = emit_sum(left);
    if (right.empty()) return push({kind, lhs, emit_constant(bound), 0});
    const uint32_t rhs = emit_sum(right);
    return push({kind, lhs, rhs, bound});
  }

  const ExprPool& pool_;
  const Slots& slot_of_;
  std::vector<Instr>& out_;
  std::unordered_map<ExprId, uint32_t> register_of_;
  std::unordered_map<int64_t, uint32_t> constant_;
};

inline int64_t step(const SizeProgram::Instr& i, const int64_t* r, const int64_t* slots) {
  switch (i.kind) {
    case Kind::Const:
      return i.value;
    case Kind::Var:
      return slots[i.a];
    case Kind::Add:
      return wrapping_add(r[i.a], wrapping_mul(i.value, r[i.b]));
    case Kind::Mul:
      return wrapping_mul(r[i.a], r[i.b]);
    case Kind::FloorDiv:
      return r[i.b] == 0 ? 0 : floor_div(r[i.a], r[i.b]);
    case Kind::Mod:
      return r[i.b] == 0 ? 0 : floor_mod(r[i.a], r[i.b]);
    case Kind::Min:
      return std::min(r[i.a], r[i.b]);
    case Kind::Max:
      return std::max(r[i.a], r[i.b]);
    case Kind::Eq:
      return r[i.a] == static_cast<__int128>(r[i.b]) + i.value;
    case Kind::Ne:
      return r[i.a] != static_cast<__int128>(r[i.b]) + i.value;
    case Kind::Lt:
      return r[i.a] < static_cast<__int128>(r[i.b]) + i.value;
    case Kind::Le:
      return r[i.a] <= static_cast<__int128>(r[i.b]) + i.value;
    case Kind::And:
      return (r[i.a] != 0) & (r[i.b] != 0);
    case Kind::Or:
      return (r[i.a] != 0) | (r[i.b] != 0);
    case Kind::Not:
      return r[i.a] == 0;
  }
  __builtin_unreachable();
}

// Returns whether the numbers of this step fit in 64 bits. Otherwise its result is wrong.
inline bool fits(const SizeProgram::Instr& i, const int64_t* r) {
  int64_t unused;
  switch (i.kind) {
    case Kind::Add:
      return !__builtin_mul_overflow(i.value, r[i.b], &unused) && !__builtin_add_overflow(r[i.a], unused, &unused);
    case Kind::Mul:
      return !__builtin_mul_overflow(r[i.a], r[i.b], &unused);
    default:
      return true;
  }
}

// The registers of a run: on the stack for all but very large programs.
class Registers {
 public:
  explicit Registers(size_t count) {
    if (count > kInline) {
      heap_.reset(new int64_t[count]);
      data_ = heap_.get();
    }
  }
  int64_t* data() { return data_; }

 private:
  static constexpr size_t kInline = 512;
  int64_t inline_[kInline];
  std::unique_ptr<int64_t[]> heap_;
  int64_t* data_ = inline_;
};

}  // namespace

SizeProgram SizeProgram::compile(const ExprPool& pool, std::span<const ExprId> outputs,
                                 const std::unordered_map<VarId, uint32_t>& slot_of) {
  SizeProgram program;
  Builder builder(pool, slot_of, program.instrs_);
  for (const ExprId output : outputs) program.outputs_.push_back(builder.emit(output));
  return program;
}

SizeProgram SizeProgram::from_parts(std::vector<Instr> instrs, std::vector<uint32_t> outputs) {
  SizeProgram program;
  for (uint32_t i = 0; i < instrs.size(); ++i) {
    const Instr& instr = instrs[i];
    const bool leaf = instr.kind == Kind::Const || instr.kind == Kind::Var;
    if (instr.kind > Kind::Not || (!leaf && (instr.a >= i || instr.b >= i))) return program;
  }
  for (const uint32_t output : outputs)
    if (output >= instrs.size()) return program;
  program.instrs_ = std::move(instrs);
  program.outputs_ = std::move(outputs);
  return program;
}

void SizeProgram::run(const int64_t* slots, int64_t* out) const {
  Registers registers(instrs_.size());
  int64_t* r = registers.data();
  for (size_t i = 0; i < instrs_.size(); ++i) r[i] = step(instrs_[i], r, slots);
  for (size_t i = 0; i < outputs_.size(); ++i) out[i] = r[outputs_[i]];
}

int64_t SizeProgram::first_zero(const int64_t* slots) const {
  Registers registers(instrs_.size());
  int64_t* r = registers.data();
  size_t done = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    for (; done <= outputs_[i]; ++done) {
      if (!fits(instrs_[done], r)) return static_cast<int64_t>(i);
      r[done] = step(instrs_[done], r, slots);
    }
    if (r[outputs_[i]] == 0) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace cresset::sym
