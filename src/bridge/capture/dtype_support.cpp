#include "bridge/capture/dtype_support.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/capture/graph_interpreter.h"
#include "bridge/capture/python_meta.h"
#include "bridge/capture/rng_state.h"
#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::ValueId;

bool is_plain_float(DType dtype) { return dtype == DType::F32 || dtype == DType::F64; }

std::optional<ValueId> pivots_of(const graph::Node& node) {
  const int8_t at = ops::traits(node.op).pivots;
  const auto* id = at >= 0 ? std::get_if<ValueId>(&node.args.at(static_cast<size_t>(at))) : nullptr;
  return id != nullptr ? std::optional(*id) : std::nullopt;
}

// Supplies the arguments as zeros (pivots as ones); small constants keep their values.
class Zeros {
 public:
  Zeros(const graph::Graph& graph, const std::vector<at::Tensor>& constants) : graph_(graph), constants_(constants) {}

  // Throws exceptions of the operator. dtype_of: the dtype in which a tensor is supplied.
  torch::jit::Stack run(const graph::Node& node, const std::function<DType(ValueId)>& dtype_of) const {
    const std::optional<ValueId> pivots = pivots_of(node);
    const auto value = [&](ValueId id) {
      const graph::Value& v = graph_.value(id);
      const DType dtype = dtype_of(id);
      if (v.kind == graph::Value::Kind::Constant && constants_[v.result].dim() == 0 && dtype == v.type.dtype)
        return constants_[v.result];
      at::Tensor zeros(
          at::detail::empty_strided_cpu(integers(v.type.sizes), integers(v.type.strides), to_torch(dtype)));
      return pivots == id ? zeros.fill_(1) : zeros.zero_();
    };
    return call_by_aten(node, value, [&](sym::ExprId e) { return graph_.env().hint(e).value(); });
  }
  bool runs(const graph::Node& node, const std::function<DType(ValueId)>& dtype_of) const {
    try {
      run(node, dtype_of);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  std::vector<int64_t> integers(const std::vector<sym::ExprId>& es) const {
    std::vector<int64_t> out;
    for (const sym::ExprId e : es) out.push_back(graph_.env().hint(e).value());
    return out;
  }

  const graph::Graph& graph_;
  const std::vector<at::Tensor>& constants_;
};

bool has_numbers(const graph::Graph& graph, const graph::Node& node) {
  bool found = false;
  graph::Graph::for_each_value(node.args, [&](const ValueId& id) {
    const graph::Value& value = graph.value(id);
    found = found || (value.kind == graph::Value::Kind::Constant && value.type.sizes.empty());
  });
  return found;
}

// first: the dtype of the operator's first tensor, if any.
DtypeTrial tried_on(const Zeros& zeros, const graph::Graph& graph, const graph::Node& node,
                    std::optional<DType> first) {
  const auto own = [&](ValueId id) { return graph.type(id).dtype; };
  try {
    DtypeTrial trial;
    const auto note = [&](const at::Tensor& result) {
      trial.made.push_back(result.defined() ? from_torch(result.scalar_type()) : std::nullopt);
    };
    const torch::jit::Stack results = zeros.run(node, own);
    // The zeros are not wrapped numbers, so their result dtypes do not count.
    if (has_numbers(graph, node)) return trial;
    for (const c10::IValue& result : results) {
      if (result.isTensor()) note(result.toTensor());
      if (result.isTensorList())
        for (const at::Tensor& one : result.toTensorVector()) note(one);
    }
    return trial;
  } catch (const c10::NotImplementedError&) {
    return {.refused = true};
  } catch (const std::exception&) {
    if (!first) return {};
  }
  // If the operator runs with other dtypes, it refused these dtypes; otherwise the zeros are most likely at fault.
  const auto runs_where = [&](const std::function<bool(ValueId)>& changes, DType to) {
    return zeros.runs(node, [&](ValueId id) { return changes(id) ? to : own(id); });
  };
  if (runs_where([&](ValueId id) { return own(id) == *first; }, DType::F32) ||
      runs_where([&](ValueId id) { return !is_integral(own(id)); }, DType::F32) ||
      runs_where([&](ValueId id) { return own(id) != *first; }, *first))
    return {.refused = true};
  bool takes_another = false;
  graph::Graph::for_each_value(node.args, [&](const ValueId& one) {
    takes_another = takes_another || (own(one) != *first && runs_where([&](ValueId id) { return id == one; }, *first));
  });
  return {.refused = takes_another};
}

}  // namespace

namespace {

struct Limits {
  double least, greatest;
  bool is_float;
};

// The range of numbers which torch converts without an error: an unsigned dtype also accepts negative numbers of its
// magnitude.
std::optional<Limits> limits_of(DType dtype) {
  switch (to_torch(dtype)) {
    case at::kByte:
      return Limits{-255, 255, false};
    case at::kChar:
      return Limits{-128, 127, false};
    case at::kShort:
      return Limits{-32768, 32767, false};
    case at::kInt:
      return Limits{-2147483648.0, 2147483647, false};
    case at::kHalf:
      return Limits{-65504, 65504, true};
    case at::kBFloat16:
      return Limits{std::numeric_limits<c10::BFloat16>::lowest(), std::numeric_limits<c10::BFloat16>::max(), true};
    case at::kFloat:
      return Limits{std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max(), true};
    default:
      return std::nullopt;
  }
}

bool fits(double number, const Limits& limits) {
  if (limits.is_float && !std::isfinite(number)) return true;
  return number >= limits.least && number <= limits.greatest;
}

bool fits(sym::ShapeEnv& env, sym::ExprId number, const Limits& limits) {
  if (limits.is_float) return true;
  sym::ExprPool& pool = env.pool();
  const sym::ExprId condition = pool.logical_and(pool.le(pool.constant(static_cast<int64_t>(limits.least)), number),
                                                 pool.le(number, pool.constant(static_cast<int64_t>(limits.greatest))));
  return env.evaluate(condition, [] { return current_reason(); }).value_or(true);  // only data can tell
}

bool is_number(const c10::Argument& argument) { return argument.type()->kind() == c10::TypeKind::NumberType; }

}  // namespace

bool numbers_fit(const graph::Graph& graph, graph::OpId op, const std::vector<Arg>& args,
                 const std::vector<graph::TensorType>& types) {
  const auto is_given = [](const Arg& arg) {
    return std::holds_alternative<sym::ExprId>(arg) || std::holds_alternative<double>(arg);
  };
  if (std::none_of(args.begin(), args.end(), is_given)) return true;
  std::vector<Limits> limits;
  const auto add = [&](DType dtype) {
    if (const std::optional<Limits> found = limits_of(dtype)) limits.push_back(*found);
  };
  if (const auto* self = args.empty() ? nullptr : std::get_if<ValueId>(&args[0])) add(graph.type(*self).dtype);
  if (!types.empty()) add(types[0].dtype);
  if (limits.empty()) return true;
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (!handle) return true;
  const auto& schema = handle->schema().arguments();
  for (size_t i = 0; i < std::min(args.size(), schema.size()); ++i) {
    if (!is_given(args[i]) || !is_number(schema[i])) continue;
    for (const Limits& l : limits) {
      const auto* number = std::get_if<double>(&args[i]);
      if (number != nullptr ? !fits(*number, l) : !fits(graph.env(), std::get<sym::ExprId>(args[i]), l)) return false;
    }
  }
  return true;
}

namespace {

// What decides whether an operator is tried, and the key of the answer.
class TrialQuestion {
 public:
  TrialQuestion(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args)
      : key(graph::op_name(op)), graph_(graph), args_(args) {
    key += static_cast<char>('A' + static_cast<int>(c10::get_default_dtype_as_scalartype()));
    add_values();
    for (const graph::Arg& arg : args) add(arg);
  }

  // A factory without tensor arguments is tried only for an unusual dtype.
  bool may_be_tried() const { return (first || unusual_) && on_cpu_ && known_ && elements_ <= kMost; }

  std::string key;
  std::optional<DType> first;  // of the tensor arguments

 private:
  static constexpr int64_t kMost = 1 << 16;

  void add_values() {
    graph::Graph::for_each_value(args_, [&](const ValueId& v) {
      const graph::TensorType& type = graph_.type(v);
      first = first.value_or(type.dtype);
      key += static_cast<char>('A' + static_cast<int>(type.dtype));
      if (type.sizes.empty()) key += graph_.value(v).kind == graph::Value::Kind::Constant ? '#' : '0';  // for promotion
      on_cpu_ = on_cpu_ && type.device.kind == graph::DeviceKind::Cpu;
      int64_t count = 1;
      for (const auto* list : {&type.sizes, &type.strides})
        for (const sym::ExprId e : *list) known_ = known_ && graph_.env().hint(e).has_value();
      for (const sym::ExprId e : type.sizes) count *= graph_.env().hint_or(e, 1);
      elements_ += count;
    });
  }

  void add(const graph::Arg& arg) {
    key += static_cast<char>('!' + arg.index());  // a float, or an int
    if (const auto* dtype = std::get_if<DType>(&arg)) {
      key += static_cast<char>('a' + static_cast<int>(*dtype));
      unusual_ = unusual_ || !(is_plain_float(*dtype) || *dtype == DType::I64);
    }
    if (const auto* flag = std::get_if<bool>(&arg)) key += *flag ? 'T' : 'F';  // out_int32
    if (const auto* text = std::get_if<std::string>(&arg)) key += *text + '\n';
    if (const auto* device = std::get_if<graph::Device>(&arg))
      on_cpu_ = on_cpu_ && device->kind == graph::DeviceKind::Cpu;
    if (first) return;
    if (const auto* number = std::get_if<sym::ExprId>(&arg)) count(*number, 1);
    if (const auto* sizes = std::get_if<std::vector<sym::ExprId>>(&arg))
      for (int64_t n = 1; const sym::ExprId e : *sizes) n = std::clamp<int64_t>(count(e, n), 1, kMost + 1);
  }

  int64_t count(sym::ExprId e, int64_t times) {
    known_ = known_ && graph_.env().hint(e).has_value();
    elements_ = std::max(elements_, times * std::abs(graph_.env().hint_or(e, 0)));
    return elements_;
  }

  const graph::Graph& graph_;
  const std::vector<graph::Arg>& args_;
  bool on_cpu_ = true, known_ = true, unusual_ = false;
  int64_t elements_ = 0;
};

// Whether all tensors have the same plain floating-point dtype.
bool is_of_plain_floats(const graph::Graph& graph, const std::vector<graph::Arg>& args) {
  std::optional<DType> floats;
  bool mixed = false;
  graph::Graph::for_each_value(args, [&](const ValueId& v) {
    const graph::TensorType& type = graph.type(v);
    if (type.sizes.empty() && graph.value(v).kind == graph::Value::Kind::Constant) return;  // most likely a number
    mixed = mixed || is_integral(type.dtype) || (floats && *floats != type.dtype);
    if (is_integral(type.dtype)) return;
    floats = floats.value_or(type.dtype);
  });
  return floats && is_plain_float(*floats) && !mixed;
}

}  // namespace

DtypeTrial try_dtypes(const graph::Graph& graph, const std::vector<at::Tensor>& constants, graph::OpId op,
                      const std::vector<graph::Arg>& args) {
  if (is_of_plain_floats(graph, args) && !ops::traits(op).for_integers) return {};
  if (!graph::op_name(op).starts_with("aten::")) return {};
  TrialQuestion question(graph, op, args);
  if (!question.may_be_tried()) return {};
  static std::mutex mutex;
  static auto* const tried = new std::unordered_map<std::string, DtypeTrial>;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = tried->find(question.key); found != tried->end()) return found->second;
  }
  graph::Node node;  // in no graph
  node.op = op;
  node.args = args;
  std::optional<SavedGenerator> before;
  if (is_random(op)) before.emplace();
  const c10::impl::ExcludeDispatchKeyGuard no_casts(c10::autocast_dispatch_keyset);  // as in programs
  DtypeTrial trial = tried_on(Zeros(graph, constants), graph, node, question.first);
  if (before) before->restore();
  const std::lock_guard lock(mutex);
  return tried->emplace(std::move(question.key), std::move(trial)).first->second;
}

}  // namespace cresset::bridge
