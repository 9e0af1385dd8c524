#include "bridge/executor/visible_strides.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorUtils.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "bridge/aten/dtypes.h"
#include "bridge/aten/empty_strides.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/python_meta.h"
#include "ops/op_def.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::TensorType;
using graph::ValueId;
using ops::OpClass;

bool in_rows(sym::ExprPool& pool, const TensorType& type) {
  return type.strides == graph::contiguous_strides(pool, type.sizes);
}

// Views whose strides at a size of 1 may differ from their formula: joined or repeated dimensions.
struct LooseViews {
  graph::OpId view = graph::op_id("aten::view"), unsafe_view = graph::op_id("aten::_unsafe_view"),
              reshape_alias = graph::op_id("aten::_reshape_alias"), expand = graph::op_id("aten::expand"),
              as_dtype = graph::op_id("aten::view.dtype"), as_real = graph::op_id("aten::view_as_real"),
              as_complex = graph::op_id("aten::view_as_complex");
  bool joins(graph::OpId op) const { return op == view || op == unsafe_view || op == reshape_alias; }
  // The same memory as elements of another dtype.
  bool reinterprets(graph::OpId op) const { return op == as_dtype || op == as_real || op == as_complex; }
};
const LooseViews& loose_views() {
  static const LooseViews views;
  return views;
}

}  // namespace

// Which values of a graph follow their stride formulas for all sizes and all argument strides in dimensions of one
// element. A false "no" is permitted: it causes only a superfluous question.
class FixedStrides {
 public:
  FixedStrides(const graph::Graph& graph, const LayoutNotes& notes) : notes_(notes), graph_(graph) {
    fixed_.assign(graph_.value_count(), false);
    for (const ValueId c : graph_.constants) fixed_[c.index] = true;
    for (const graph::NodeId id : graph_.order) add(graph_.node(id));
  }
  bool operator()(ValueId v) const { return fixed_[v.index]; }

 private:
  void add(const graph::Node& node) {
    const ops::OpDef* def = ops::find(node.op);
    const bool asked = def != nullptr && def->shape != nullptr && (!node.through_aten || of_complex_numbers(node));
    for (const ValueId r : node.results) {
      const auto like = notes_.lies_as.find(r);
      const bool copied = notes_.choices.contains(r);
      fixed_[r.index] = like != notes_.lies_as.end()          ? fixed_[like->second.index]
                        : copied                              ? false
                        : notes_.clones.contains(r)           ? is_fixed_clone(node, r)
                        : asked                               ? is_fixed(node, *def, r)
                        : loose_views().reinterprets(node.op) ? fixed_[std::get<ValueId>(node.args[0]).index]
                                                              : true;  // no rule says more than the formula
    }
  }

  // Their operators go through ATen for their numbers' sake; the rules of strides are those of real numbers.
  bool of_complex_numbers(const graph::Node& node) const {
    bool any = false;
    graph::Graph::for_each_value(
        node.args, [&](ValueId v) { any = any || category(graph_.type(v).dtype) == DTypeCategory::Complex; });
    return any || std::any_of(node.results.begin(), node.results.end(),
                              [&](ValueId v) { return category(graph_.type(v).dtype) == DTypeCategory::Complex; });
  }

  bool is_fixed_clone(const graph::Node& node, ValueId result) const {
    const ValueId source = std::get<ValueId>(node.args[0]);
    return fixed_[source.index] && in_rows(graph_.pool(), graph_.type(source)) &&
           in_rows(graph_.pool(), graph_.type(result));
  }

  bool is_fixed(const graph::Node& node, const ops::OpDef& def, ValueId result) const {
    const TensorType& type = graph_.type(result);
    const bool rows = in_rows(graph_.pool(), type);
    bool all_fixed = true, all_rows = true;
    size_t rank = type.rank();
    graph::Graph::for_each_value(node.args, [&](ValueId v) {
      if (graph_.type(v).rank() == 0) return;
      rank = std::max(rank, graph_.type(v).rank());
      all_fixed = all_fixed && fixed_[v.index];
      all_rows = all_rows && in_rows(graph_.pool(), graph_.type(v));
    });
    // Products of sizes count a size of 0 as 0 and ATen counts it as 1, which is corrected for row-major strides alone.
    if (def.op_class == OpClass::View) return rows && all_fixed && keeps_formula(node, type, all_rows);
    if (!rows) return false;
    if (type.rank() == 0 || def.op_class == OpClass::Reduction || (all_fixed && all_rows)) return true;
    // Row-major although its arguments are not, and no image: its layout does not depend on theirs.
    return def.op_class != OpClass::Pointwise && !all_rows && rank <= 3;
  }

  bool keeps_formula(const graph::Node& node, const TensorType& type, bool all_rows) const {
    if (loose_views().joins(node.op)) return all_rows;
    if (node.op != loose_views().expand) return true;
    const std::vector<sym::ExprId>& had = graph_.type(std::get<ValueId>(node.args[0])).sizes;
    for (size_t d = 0; d < type.rank(); ++d) {
      const size_t added = type.rank() - had.size();
      if ((d < added || type.sizes[d] != had[d - added]) && !graph_.pool().is_const(type.sizes[d])) return false;
    }
    return true;
  }

  const LayoutNotes& notes_;
  const graph::Graph& graph_;
  std::vector<bool> fixed_;
};

// A collection of distinct expressions; each has a position for its number.
class NumberTable {
 public:
  uint32_t add(sym::ExprId e) {
    const auto [it, fresh] = places_.try_emplace(e, static_cast<uint32_t>(exprs_.size()));
    if (fresh) exprs_.push_back(e);
    return it->second;
  }
  uint32_t operator[](sym::ExprId e) const { return places_.at(e); }
  const std::vector<sym::ExprId>& exprs() const { return exprs_; }

 private:
  std::unordered_map<sym::ExprId, uint32_t> places_;
  std::vector<sym::ExprId> exprs_;
};

struct VisibleStrides::Steps {
  struct Type {
    DType dtype;
    graph::Device device;
    std::vector<uint32_t> sizes, strides;  // positions of numbers
  };
  struct Step {
    graph::OpId op;
    std::vector<Arg> args;  // values: positions among the types
    std::vector<uint32_t> results;
    std::optional<ViewChoice> choice;  // of the value in args[0]
  };
  std::vector<Type> types;                               // of all values, by position
  std::vector<std::pair<uint32_t, uint32_t>> arguments;  // position among the types, position in the call
  std::vector<Step> steps;
  std::vector<std::optional<uint32_t>> results;  // positions
  NumberTable numbers;
  sym::SizeProgram program;  // computes the numbers
  sym::SizeProgram sizes;    // computes the numbers which are sizes and not constant
  bool has_one = false;      // whether a constant size is 0 or 1

  std::shared_ptr<const Answer> run(const std::vector<int64_t>& values, c10::ArrayRef<at::Tensor> inputs) const;

 private:
  TensorType type_of(graph::Graph& scratch, const Type& type, const std::vector<int64_t>& values) const;
  Arg argument(graph::Graph& scratch, const Arg& arg, const std::vector<int64_t>& values,
               const std::vector<ValueId>& at) const;
  std::optional<std::vector<TensorType>> ask(graph::Graph& scratch, const Step& step, const std::vector<Arg>& args,
                                             const std::vector<TensorType>& formulas) const;
};

// ---- The questions

class VisibleStrides::Maker {
 public:
  Maker(const Captured& captured, const LayoutNotes& notes, size_t real_inputs,
        const std::unordered_map<sym::VarId, uint32_t>& slots)
      : captured_(captured),
        notes_(notes),
        graph_(*captured.graph),
        slots_(slots),
        fixed_(graph_, notes),
        out_(std::make_unique<Steps>()) {
    for (size_t i = 0; i < real_inputs; ++i) positions_.try_emplace(graph_.inputs[i], static_cast<uint32_t>(i));
  }

  std::unique_ptr<Steps> make() {
    find_needed();
    if (needed_.empty()) return nullptr;
    for (size_t i = 0; i < positions_.size(); ++i)
      if (i < graph_.inputs.size() && needed_.contains(graph_.inputs[i])) (void)place(graph_.inputs[i]);
    for (const graph::NodeId id : graph_.order) add(graph_.node(id));
    for (const OutputSpec& spec : captured_.outputs)
      out_->results.push_back(is_asked(spec.value) ? std::optional(place(resolved(spec.value))) : std::nullopt);
    compile();
    return std::move(out_);
  }

 private:
  // The value whose layout another value has.
  ValueId resolved(ValueId v) const {
    for (auto like = notes_.lies_as.find(v); like != notes_.lies_as.end(); like = notes_.lies_as.find(v))
      v = like->second;
    return v;
  }
  bool is_known(const TensorType& type) const {
    std::vector<sym::VarId> vars;
    for (const auto* list : {&type.sizes, &type.strides})
      for (const sym::ExprId e : *list) graph_.pool().collect_vars(e, vars);
    return std::all_of(vars.begin(), vars.end(), [&](sym::VarId v) { return slots_.contains(v); });
  }
  bool is_asked(ValueId v) const { return v.valid() && !fixed_(resolved(v)) && is_known(graph_.type(resolved(v))); }

  void find_needed() {
    const auto need = [&](ValueId v) {
      if (is_asked(v)) needed_.insert(resolved(v));
    };
    for (const OutputSpec& spec : captured_.outputs) need(spec.value);
    for (size_t i = graph_.order.size(); i-- > 0;) {
      const graph::Node& node = graph_.node(graph_.order[i]);
      for (const ValueId r : node.results) {
        if (!needed_.contains(r)) continue;
        if (const auto choice = notes_.choices.find(r); choice != notes_.choices.end())
          need(choice->second.source);
        else
          graph::Graph::for_each_value(node.args, need);
      }
    }
  }

  void add(const graph::Node& node) {
    const bool wanted =
        std::any_of(node.results.begin(), node.results.end(), [&](ValueId r) { return needed_.contains(r); });
    if (!wanted || !node_is_known(node)) return;
    Steps::Step step{node.op, node.args, {}, std::nullopt};
    if (const auto choice = notes_.choices.find(node.results[0]); choice != notes_.choices.end()) {
      step.choice = choice->second;
      step.args.assign(1, choice->second.source);
    } else if (notes_.clones.contains(node.results[0])) {
      step.op = graph::op_id("aten::clone");
      step.args = {node.args[0], graph::None{}};
    }
    for (Arg& arg : step.args) note(arg);
    for (const ValueId r : node.results) step.results.push_back(place(r));
    out_->steps.push_back(std::move(step));
  }

  bool node_is_known(const graph::Node& node) const {
    const auto known = [&](sym::ExprId e) {
      std::vector<sym::VarId> vars;
      graph_.pool().collect_vars(e, vars);
      return std::all_of(vars.begin(), vars.end(), [&](sym::VarId v) { return slots_.contains(v); });
    };
    bool all = true;
    for (const Arg& arg : node.args) {
      if (const auto* e = std::get_if<sym::ExprId>(&arg)) all = all && known(*e);
      if (const auto* es = std::get_if<std::vector<sym::ExprId>>(&arg))
        all = all && std::all_of(es->begin(), es->end(), known);
    }
    for (const ValueId r : node.results) all = all && is_known(graph_.type(r));
    graph::Graph::for_each_value(node.args, [&](ValueId v) { all = all && is_known(graph_.type(resolved(v))); });
    return all;
  }

  void note(Arg& arg) {
    if (auto* v = std::get_if<ValueId>(&arg)) v->index = place(resolved(*v));
    if (auto* list = std::get_if<std::vector<graph::OptionalValue>>(&arg))
      for (graph::OptionalValue& v : *list)
        if (v) v->index = place(resolved(*v));
    if (auto* e = std::get_if<sym::ExprId>(&arg)) out_->numbers.add(*e);
    if (auto* es = std::get_if<std::vector<sym::ExprId>>(&arg))
      for (const sym::ExprId e : *es) out_->numbers.add(e);
  }

  uint32_t place(ValueId v) {
    const auto [it, fresh] = places_.try_emplace(v, static_cast<uint32_t>(out_->types.size()));
    if (!fresh) return it->second;
    const TensorType& type = graph_.type(v);
    Steps::Type made{type.dtype, type.device, {}, {}};
    for (const sym::ExprId e : type.sizes) made.sizes.push_back(out_->numbers.add(e));
    for (const sym::ExprId e : type.strides) made.strides.push_back(out_->numbers.add(e));
    sizes_.insert(sizes_.end(), type.sizes.begin(), type.sizes.end());
    out_->types.push_back(std::move(made));
    if (const auto position = positions_.find(v); position != positions_.end())
      out_->arguments.emplace_back(it->second, position->second);
    return it->second;
  }

  void compile() {
    out_->program = sym::SizeProgram::compile(graph_.pool(), out_->numbers.exprs(), slots_);
    std::vector<sym::ExprId> free;
    for (const sym::ExprId size : sizes_) {
      if (graph_.pool().is_const(size))
        out_->has_one = out_->has_one || graph_.pool().const_value(size) < 2;
      else if (std::find(free.begin(), free.end(), size) == free.end())
        free.push_back(size);
    }
    out_->sizes = sym::SizeProgram::compile(graph_.pool(), free, slots_);
  }

  const Captured& captured_;
  const LayoutNotes& notes_;
  const graph::Graph& graph_;
  const std::unordered_map<sym::VarId, uint32_t>& slots_;
  FixedStrides fixed_;
  std::unique_ptr<Steps> out_;
  std::unordered_map<ValueId, uint32_t> positions_, places_;
  std::unordered_set<ValueId> needed_;
  std::vector<sym::ExprId> sizes_;
};

// ---- The answers

TensorType VisibleStrides::Steps::type_of(graph::Graph& scratch, const Type& type,
                                          const std::vector<int64_t>& values) const {
  TensorType out{type.dtype, type.device, {}, {}};
  std::vector<int64_t> sizes, strides;
  for (const uint32_t n : type.sizes) sizes.push_back(values[n]);
  for (const uint32_t n : type.strides) strides.push_back(values[n]);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) count_empty_as_one(sizes, strides);
  for (const int64_t size : sizes) out.sizes.push_back(scratch.pool().constant(size));
  for (const int64_t stride : strides) out.strides.push_back(scratch.pool().constant(stride));
  return out;
}

Arg VisibleStrides::Steps::argument(graph::Graph& scratch, const Arg& arg, const std::vector<int64_t>& values,
                                    const std::vector<ValueId>& at) const {
  const auto number = [&](sym::ExprId e) { return scratch.pool().constant(values[numbers[e]]); };
  if (const auto* v = std::get_if<ValueId>(&arg)) return at[v->index];
  if (const auto* e = std::get_if<sym::ExprId>(&arg)) return number(*e);
  if (const auto* list = std::get_if<std::vector<graph::OptionalValue>>(&arg)) {
    std::vector<graph::OptionalValue> out;
    for (const graph::OptionalValue& v : *list) out.push_back(v ? graph::OptionalValue(at[v->index]) : std::nullopt);
    return out;
  }
  if (const auto* es = std::get_if<std::vector<sym::ExprId>>(&arg)) {
    std::vector<sym::ExprId> out;
    for (const sym::ExprId e : *es) out.push_back(number(e));
    return out;
  }
  return arg;
}

namespace {

std::vector<int64_t> numbers_of(const graph::Graph& graph, const std::vector<sym::ExprId>& exprs) {
  std::vector<int64_t> out;
  for (const sym::ExprId e : exprs) out.push_back(graph.pool().const_value(e));
  return out;
}

// The strides of what is made in the format that a tensor suggests which lies so.
std::vector<int64_t> in_suggested_format(c10::IntArrayRef had, c10::IntArrayRef lay, c10::IntArrayRef sizes) {
  const Capture::StepAside aside;
  const at::Tensor source(at::detail::empty_strided_meta(had, lay, at::kFloat));
  const at::Tensor made(at::detail::empty_meta(sizes, at::kFloat, source.suggest_memory_format()));
  return made.strides().vec();
}

// Replaces complex arguments by real ones of the same layout: shape rules refuse complex numbers, whose strides follow
// the same rules.
class AsRealNumbers {
 public:
  AsRealNumbers(graph::Graph& graph, std::vector<Arg> given) : args(std::move(given)), graph_(graph) {
    graph::Graph::for_each_value(args, [&](const ValueId& v) {
      DType& dtype = graph_.value(v).type.dtype;
      if (category(dtype) == DTypeCategory::Complex) replaced_.emplace_back(v, dtype);
      dtype = real(dtype);
    });
    for (Arg& arg : args)
      if (auto* wanted = std::get_if<DType>(&arg)) *wanted = real(*wanted);
  }
  ~AsRealNumbers() {
    for (const auto& [v, dtype] : replaced_) graph_.value(v).type.dtype = dtype;
  }
  AsRealNumbers(const AsRealNumbers&) = delete;

  std::vector<Arg> args;

 private:
  static DType real(DType dtype) {
    if (category(dtype) != DTypeCategory::Complex) return dtype;
    return dtype == DType::C128 ? DType::F64 : dtype == DType::C64 ? DType::F32 : DType::F16;
  }

  graph::Graph& graph_;
  std::vector<std::pair<ValueId, DType>> replaced_;
};

// What reshape or contiguous gives: a view of its argument where that can be.
std::vector<int64_t> chosen(const ViewChoice& choice, c10::IntArrayRef had, c10::IntArrayRef lay,
                            c10::IntArrayRef sizes, std::vector<int64_t> copied) {
  if (choice.format == c10::MemoryFormat::Preserve) return in_suggested_format(had, lay, sizes);
  if (choice.any_view) {
    const auto view = at::detail::computeStride(had, lay, sizes);
    return view ? std::vector<int64_t>(view->begin(), view->end()) : std::move(copied);
  }
  return gives_source(choice, had, lay) ? lay.vec() : std::move(copied);
}

// The complex argument of a pointwise operator with real results (abs): ATen makes the result like it. nullptr: the
// operator is another one.
const TensorType* made_like_complex(const graph::Graph& graph, const ops::OpDef& def, const std::vector<Arg>& args,
                                    const std::vector<TensorType>& formulas) {
  const auto is_complex = [](DType dtype) { return category(dtype) == DTypeCategory::Complex; };
  if (def.op_class != OpClass::Pointwise || args.size() != 1 || is_complex(formulas[0].dtype)) return nullptr;
  const auto* value = std::get_if<ValueId>(&args[0]);
  return value != nullptr && is_complex(graph.type(*value).dtype) ? &graph.type(*value) : nullptr;
}

// The types which the operator's meta kernel makes of complex tensors: no shape rule covers them. nullopt: the tensors
// are real, or there is no such kernel.
std::optional<std::vector<TensorType>> ask_meta_kernel(graph::Graph& graph, graph::OpId op,
                                                       const std::vector<Arg>& args,
                                                       const std::vector<TensorType>& formulas) {
  const auto is_complex = [](DType dtype) { return category(dtype) == DTypeCategory::Complex; };
  bool any = is_complex(formulas[0].dtype);
  graph::Graph::for_each_value(args, [&](const ValueId& v) { any = any || is_complex(graph.type(v).dtype); });
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (!any || formulas.size() != 1 || !handle || handle->schema().is_mutable() || asks_python_for_sizes(*handle))
    return std::nullopt;
  const auto tensor = [&](ValueId v) {
    const TensorType& type = graph.type(v);
    return at::Tensor(at::detail::empty_strided_meta(numbers_of(graph, type.sizes), numbers_of(graph, type.strides),
                                                     to_torch(type.dtype)));
  };
  const Capture::StepAside aside;
  try {
    torch::jit::Stack stack;
    for (size_t i = 0; i < args.size(); ++i) {
      if (std::holds_alternative<graph::Device>(args[i]))
        stack.emplace_back(c10::Device(c10::kMeta));
      else
        stack.push_back(to_torch(args[i], arg_type(handle->schema().arguments()[i]), tensor,
                                 [&](sym::ExprId e) { return graph.pool().const_value(e); }));
    }
    handle->callBoxed(stack);
    const at::Tensor made = stack.at(0).toTensor();
    if (made.sizes() != c10::IntArrayRef(numbers_of(graph, formulas[0].sizes))) return std::nullopt;
    std::vector<TensorType> out = formulas;
    out[0].strides.clear();
    for (const int64_t s : made.strides()) out[0].strides.push_back(graph.pool().constant(s));
    return out;
  } catch (const std::exception&) {  // of a device, or of data
    return std::nullopt;
  }
}

// Strides of the same memory in elements of another dtype, as ATen computes them.
std::vector<int64_t> reinterpreted(graph::OpId op, c10::IntArrayRef lay, int64_t from, int64_t to) {
  std::vector<int64_t> out = lay.vec();
  if (from == to) return out;
  for (int64_t& stride : out) stride = stride * from / to;
  if (op == loose_views().as_real)
    out.push_back(1);
  else if (op == loose_views().as_complex)
    out.pop_back();
  else if (!out.empty())
    out.back() = 1;
  return out;
}

}  // namespace

// nullopt: no rule says more than the formulas.
std::optional<std::vector<TensorType>> VisibleStrides::Steps::ask(graph::Graph& scratch, const Step& step,
                                                                  const std::vector<Arg>& args,
                                                                  const std::vector<TensorType>& formulas) const {
  if (step.choice || loose_views().joins(step.op)) {
    const TensorType& had = scratch.type(std::get<ValueId>(args[0]));
    const std::vector<int64_t> sizes = numbers_of(scratch, formulas[0].sizes);
    const ViewChoice choice = step.choice.value_or(ViewChoice{{}, true});
    std::vector<TensorType> out = formulas;
    out[0].strides.clear();
    for (const int64_t s : chosen(choice, numbers_of(scratch, had.sizes), numbers_of(scratch, had.strides), sizes,
                                  numbers_of(scratch, formulas[0].strides)))
      out[0].strides.push_back(scratch.pool().constant(s));
    return out;
  }
  if (loose_views().reinterprets(step.op)) {
    const TensorType& had = scratch.type(std::get<ValueId>(args[0]));
    std::vector<TensorType> out = formulas;
    out[0].strides.clear();
    for (const int64_t s :
         reinterpreted(step.op, numbers_of(scratch, had.strides), byte_size(had.dtype), byte_size(formulas[0].dtype)))
      out[0].strides.push_back(scratch.pool().constant(s));
    return out;
  }
  if (auto found = ask_meta_kernel(scratch, step.op, args, formulas)) return found;
  const ops::OpDef* def = ops::find(step.op);
  if (def == nullptr || def->shape == nullptr) return std::nullopt;
  try {
    ops::ShapeContext context(scratch, graph::op_name(step.op));
    if (const TensorType* lies = made_like_complex(scratch, *def, args, formulas)) {
      std::vector<TensorType> out = formulas;
      out[0].strides = context.like_strides(*lies);
      return out;
    }
    const AsRealNumbers real(scratch, args);
    Result<ops::Types> types = def->shape(context, ops::OpArgs(scratch, real.args));
    if (!types.ok() || types->size() != formulas.size()) return std::nullopt;
    for (size_t i = 0; i < formulas.size(); ++i) {
      if ((*types)[i].sizes != formulas[i].sizes) return std::nullopt;
      (*types)[i].dtype = formulas[i].dtype;
    }
    return std::move(*types);
  } catch (const std::exception&) {  // a rule which requires general sizes
    return std::nullopt;
  }
}

std::shared_ptr<const VisibleStrides::Answer> VisibleStrides::Steps::run(const std::vector<int64_t>& values,
                                                                         c10::ArrayRef<at::Tensor> inputs) const {
  graph::Graph scratch(std::make_shared<sym::ShapeEnv>());
  std::vector<ValueId> at(types.size());
  std::vector<bool> made(types.size(), false);
  for (const Step& step : steps)
    for (const uint32_t r : step.results) made[r] = true;
  for (size_t i = 0; i < types.size(); ++i)
    if (!made[i]) at[i] = scratch.add_input(type_of(scratch, types[i], values), "");
  for (const auto& [place, position] : arguments) {
    std::vector<sym::ExprId>& strides = scratch.value(at[place]).type.strides;
    for (size_t d = 0; d < strides.size(); ++d)
      strides[d] = scratch.pool().constant(inputs[position].stride(static_cast<int64_t>(d)));
  }
  for (const Step& step : steps) {
    std::vector<Arg> args;
    for (const Arg& arg : step.args) args.push_back(argument(scratch, arg, values, at));
    std::vector<TensorType> formulas;
    for (const uint32_t r : step.results) formulas.push_back(type_of(scratch, types[r], values));
    std::optional<std::vector<TensorType>> found = ask(scratch, step, args, formulas);
    const graph::NodeId node = scratch.add_node(step.op, std::move(args), found ? *std::move(found) : formulas);
    for (size_t i = 0; i < step.results.size(); ++i) at[step.results[i]] = scratch.node(node).results[i];
  }
  auto answer = std::make_shared<Answer>();
  for (const std::optional<uint32_t>& result : results)
    answer->push_back(result ? numbers_of(scratch, scratch.type(at[*result]).strides) : std::vector<int64_t>());
  return answer;
}

// ---- At calls

VisibleStrides::VisibleStrides(std::unique_ptr<Steps> steps) : steps_(std::move(steps)) {}
VisibleStrides::~VisibleStrides() = default;

std::unique_ptr<VisibleStrides> VisibleStrides::of(const Captured& captured, size_t real_inputs,
                                                   const std::unordered_map<sym::VarId, uint32_t>& slots) {
  const auto noted = std::find_if(captured.outputs.begin(), captured.outputs.end(),
                                  [](const OutputSpec& spec) { return spec.notes != nullptr; });
  if (noted == captured.outputs.end()) return nullptr;
  std::unique_ptr<Steps> steps = Maker(captured, *noted->notes, real_inputs, slots).make();
  return steps == nullptr ? nullptr : std::unique_ptr<VisibleStrides>(new VisibleStrides(std::move(steps)));
}

std::shared_ptr<const VisibleStrides::Answer> VisibleStrides::find(c10::ArrayRef<at::Tensor> inputs,
                                                                   const int64_t* symbols) const {
  if (is_general(inputs, symbols)) return nullptr;
  std::vector<int64_t> values(steps_->program.output_count());
  steps_->program.run(symbols, values.data());
  std::vector<int64_t> key = values;
  for (const auto& [place, position] : steps_->arguments)
    key.insert(key.end(), inputs[position].strides().begin(), inputs[position].strides().end());
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, answer] : kept_)
      if (known == key) return answer;
  }
  std::shared_ptr<const Answer> answer = steps_->run(values, inputs);
  const std::lock_guard lock(mutex_);
  if (kept_.size() < kKept)
    kept_.emplace_back(std::move(key), answer);
  else
    kept_[next_++ % kKept] = {std::move(key), answer};
  return answer;
}

// Whether no size is 0 or 1. Then arguments follow the formulas, because their guards require it.
bool VisibleStrides::is_general(c10::ArrayRef<at::Tensor>, const int64_t* symbols) const {
  if (steps_->has_one) return false;
  c10::SmallVector<int64_t, 16> sizes(steps_->sizes.output_count());
  if (!sizes.empty()) steps_->sizes.run(symbols, sizes.data());
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 1; });
}

bool same_addresses(c10::IntArrayRef sizes, c10::IntArrayRef a, c10::IntArrayRef b) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && a[d] != b[d]) return false;
  return true;
}

at::Tensor with_strides(at::Tensor tensor, c10::IntArrayRef strides) {
  if (tensor.strides() == strides) return tensor;
  const std::vector<int64_t> sizes = tensor.sizes().vec();
  if (!same_addresses(sizes, tensor.strides(), strides))
    return at::empty_strided(sizes, strides, tensor.options()).copy_(tensor);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

}  // namespace cresset::bridge
