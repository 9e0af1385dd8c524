#include "bridge/capture/meta_shape_rule.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "bridge/aten/dtypes.h"
#include "bridge/capture/arguments.h"
#include "bridge/capture/data_dependent_errors.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/capture/python_meta.h"
#include "bridge/capture/rng_state.h"
#include "bridge/capture/sym_node.h"
#include "bridge/symbolic/shape_extrapolation.h"
#include "ops/result_types.h"

namespace cresset::bridge {
namespace {

using sym::ExprId;
using Tensors = std::vector<at::Tensor>;

bool has_meta_kernel(const c10::OperatorHandle& handle) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// Whether the operator runs on zeros: it has no meta kernel, or a meta kernel whose sizes, strides or dtypes differ
// from the real kernel's.
bool must_run(graph::OpId op) {
  const ops::Inference inference = ops::traits(op).inference;
  return inference == ops::Inference::RunsOnceInTraining ? at::GradMode::is_enabled()
                                                         : inference != ops::Inference::Meta;
}

c10::OperatorHandle checked_operator(graph::OpId op) {
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  const std::string name(graph::op_name(op));
  if (!handle) abort_capture(BreakKind::UnsupportedOperator, "unknown operator " + name);
  if (!has_meta_kernel(*handle) && !must_run(op))
    abort_capture(BreakKind::UnsupportedOperator, name + " has neither a native rule nor a meta kernel");
  for (const c10::Argument& r : handle->schema().returns()) {
    const ArgType type = arg_type(r);
    if (type != ArgType::Tensor && type != ArgType::TensorList)
      abort_capture(BreakKind::DataDependentValue, name + " returns a number that only data can give");
  }
  return *handle;
}

// Runs the operator's meta kernel on tensors of given sizes.
class MetaCall {
 public:
  MetaCall(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args)
      : capture_(capture), handle_(checked_operator(op)), args_(args), op_(op) {
    gather();
    const bool runs = must_run(op) || (!may_size_by_data(capture_.graph(), op, args_) &&
                                       runs_for_sizes(capture_, handle_, op, args_, device_));
    on_meta_ = !runs;
    // A matrix of zeros has rank 0, so linear algebra on zeros gives no general result: ones are used.
    const ops::OpTraits traits = ops::traits(op);
    on_ones_ = !on_meta_ && (traits.of_matrices || traits.pivots >= 0);
  }

  // Distinct, simplified: all sizes on which the call depends.
  const std::vector<ExprId>& sizes() const { return sizes_; }
  void gather() {  // collects sizes_, simplified with present knowledge
    sizes_.clear();
    device_ = ops::device_of_results(capture_.graph(), graph::op_name(op_), args_);
    for (const graph::Arg& arg : args_) {
      if (const auto* value = std::get_if<graph::ValueId>(&arg)) add_tensor(*value);
      if (const auto* e = std::get_if<ExprId>(&arg)) add_size(*e);
      if (const auto* es = std::get_if<std::vector<ExprId>>(&arg))
        std::for_each(es->begin(), es->end(), [&](ExprId e) { add_size(e); });
      if (const auto* values = std::get_if<std::vector<graph::OptionalValue>>(&arg))
        for (const graph::OptionalValue& v : *values)
          if (v) add_tensor(*v);
    }
  }
  const graph::Device& device() const { return device_; }
  bool is_on_trust() const { return !on_meta_ && !must_run(op_) && checks_of(handle_, op_) == ops::Checks::NoSizes; }
  // Called after the CPU's kernel lacked the dtype of a call for another device: runs it on f32 in the place of 16-bit
  // floats. Returns false where the dtypes of the results would not be known then.
  bool turn_to_wider_floats() {
    if (on_meta_ || narrow_ || device_.kind == graph::DeviceKind::Cpu) return false;
    bool mixed = false;
    const auto see = [&](DType dtype) {
      const DType real = dtype == DType::C32 ? DType::F16 : dtype;
      mixed = mixed || dtype == DType::F32 || dtype == DType::C64 || (narrow_ && is_narrow(real) && *narrow_ != real);
      if (is_narrow(real)) narrow_ = real;
    };
    graph::Graph::for_each_value(args_, [&](const graph::ValueId& v) { see(capture_.graph().type(v).dtype); });
    for (const graph::Arg& arg : args_)
      if (const auto* dtype = std::get_if<DType>(&arg)) see(*dtype);
    if (mixed) narrow_.reset();
    return narrow_.has_value();
  }
  DType dtype_of_result(DType made) const {
    if (narrow_ == DType::F16 && made == DType::C64) return DType::C32;
    return narrow_ && made == DType::F32 ? *narrow_ : made;
  }
  // Called after the operator refused zeros: tries ones and identity matrices, then the meta kernel. Returns false when
  // no alternative is left.
  bool turn_to_another_way() {
    if (on_meta_ || must_run(op_)) return false;
    on_meta_ = std::exchange(on_ones_, true);
    return true;
  }
  // Returns the results. Raises exceptions of the meta kernel for sizes which it rejects.
  Tensors run(const std::function<int64_t(ExprId)>& value) const {
    check_affordable(value);
    std::unordered_map<graph::ValueId, at::Tensor> made;
    const auto tensor = [&](graph::ValueId id) {
      if (const auto known = made.find(id); known != made.end()) return known->second;
      if (is_number(id))
        return made[id] =
                   // As a wrapped Python number, also beside meta tensors.
               capture_.recorder().constant(capture_.graph().value(id));
      const graph::TensorType& type = capture_.graph().type(id);
      std::vector<int64_t> sizes, strides;
      for (const ExprId e : type.sizes) sizes.push_back(value(e));
      for (const ExprId e : type.strides) strides.push_back(value(e));
      return made[id] = empty(sizes, strides, to_torch(dtype_of_sample(type.dtype)));
    };
    const c10::FunctionSchema& schema = handle_.schema();
    torch::jit::Stack stack;
    for (size_t i = 0; i < args_.size(); ++i) {
      const ArgType type = arg_type(schema.arguments()[i]);
      if (on_meta_ && std::holds_alternative<graph::Device>(args_[i])) {
        stack.emplace_back(c10::Device(c10::kMeta));
        continue;
      }
      const auto* dtype = std::get_if<DType>(&args_[i]);
      stack.push_back(to_torch(dtype != nullptr ? graph::Arg(dtype_of_sample(*dtype)) : args_[i], type, tensor, value));
      // An absent device argument of a factory means CPU here, and meta for the inference of its result.
      if (on_meta_ && type == ArgType::Device && stack.back().isNone()) stack.back() = c10::Device(c10::kMeta);
    }
    check_memory(stack);
    call(stack);
    const uint64_t never = never_given();
    absent_ = 0;
    Tensors out;
    for (size_t i = 0; i < stack.size(); ++i) {
      if (!stack[i].isTensor()) {
        for (const at::Tensor& t : stack[i].toTensorVector()) out.push_back(t);
      } else if (stack[i].toTensor().defined() && (never >> i & 1) == 0) {
        out.push_back(stack[i].toTensor());
      } else {
        absent_ |= uint64_t{1} << i;
      }
    }
    return out;
  }
  uint64_t absent() const { return absent_; }  // bit mask of results, by position, missing in the last run

 private:
  void call(torch::jit::Stack& stack) const {
    const Capture::StepAside aside;
    if (on_meta_) return handle_.callBoxed(stack);
    const c10::impl::ExcludeDispatchKeyGuard no_casts(c10::autocast_dispatch_keyset);  // as in programs
    if (!is_random(op_)) return handle_.callBoxed(stack);
    const SavedGenerator before;
    try {
      handle_.callBoxed(stack);
    } catch (...) {
      before.restore();
      throw;
    }
    before.restore();
  }

  // The kernel of an inverse transform does not validate the length of the spectrum.
  void check_memory(const std::vector<c10::IValue>& stack) const {
    if (on_meta_ || handle_.schema().name() != "aten::_fft_c2r") return;
    const int64_t last = stack[1].toIntVector().back(), length = stack[3].toInt();
    TORCH_CHECK(length >= 1 && stack[0].toTensor().size(last) == length / 2 + 1, "a spectrum of another length");
  }

  // Limits the work of an operator which runs for real: sizes far above the caller's are not tried.
  void check_affordable(const std::function<int64_t(ExprId)>& value) const {
    if (on_meta_) return;
    if (!must_run(op_)) {
      TORCH_CHECK(work_of(capture_, args_, value) <= 8 * kLittleWork, "a choice of sizes that is too much work");
      return;
    }
    constexpr double kMuch = 1 << 20;
    double elements = 0;
    for (const graph::Arg& arg : args_) {
      const auto* id = std::get_if<graph::ValueId>(&arg);
      if (id == nullptr) continue;
      double here = 1;
      for (const ExprId e : capture_.graph().type(*id).sizes) here *= static_cast<double>(value(e));
      elements += here;
    }
    if (!most_elements_) most_elements_ = std::max(kMuch, 4 * elements);  // the first run uses the caller's sizes
    TORCH_CHECK(elements <= *most_elements_, "a choice of sizes that would take too much memory");
  }

  // Results which only the meta kernel returns.
  uint64_t never_given() const {
    if (const uint64_t unwanted = unwanted_results(handle_.schema(), args_)) return unwanted;
    const std::string& name = handle_.schema().name();
    // The values for its backward pass depend on the grad mode, not on `train`.
    if (name == "aten::mkldnn_rnn_layer") return at::GradMode::is_enabled() ? 0 : 1u << 3;
    if (name != "aten::_native_multi_head_attention") return 0;
    const std::optional<int> position = handle_.schema().argumentIndexWithName("need_weights");
    const bool* wanted = position ? std::get_if<bool>(&args_[static_cast<size_t>(*position)]) : nullptr;
    return wanted != nullptr && !*wanted ? 1u << 1 : 0;
  }
  static bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }
  DType dtype_of_sample(DType dtype) const {
    if (narrow_ && dtype == DType::C32) return DType::C64;
    return narrow_ && is_narrow(dtype) ? DType::F32 : dtype;
  }

  at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) const {
    if (on_meta_) return at::Tensor(at::detail::empty_strided_meta(sizes, strides, dtype));
    const Capture::StepAside aside;
    at::Tensor made(at::detail::empty_strided_cpu(sizes, strides, dtype));
    made.zero_();
    if (on_ones_ && (made.dim() < 2 || !(made.is_floating_point() || made.is_complex()))) made.fill_(1);
    if (on_ones_ && made.dim() >= 2) made.diagonal(0, -2, -1).fill_(1);
    return made;
  }
  // Whether the tensor wraps a Python number, which does not promote dtypes within its category.
  bool is_number(graph::ValueId id) const {
    const graph::Value& value = capture_.graph().value(id);
    return value.kind == graph::Value::Kind::Constant &&
           capture_.recorder().constant(value).unsafeGetTensorImpl()->is_wrapped_number();
  }
  void add_size(ExprId e) {
    e = capture_.env().simplify(e);
    if (std::find(sizes_.begin(), sizes_.end(), e) == sizes_.end()) sizes_.push_back(e);
  }
  void add_tensor(graph::ValueId id) {
    const graph::TensorType& type = capture_.graph().type(id);
    for (const ExprId e : type.sizes) add_size(e);
    for (const ExprId e : type.strides) add_size(e);
  }

  Capture& capture_;
  c10::OperatorHandle handle_;
  const std::vector<graph::Arg>& args_;
  graph::OpId op_;
  bool on_meta_ = true, on_ones_ = false;
  std::optional<DType> narrow_;  // the dtype of the call for which samples have f32
  std::vector<ExprId> sizes_;
  graph::Device device_;
  mutable uint64_t absent_ = 0;
  mutable std::optional<double> most_elements_;
};

}  // namespace

uint64_t unwanted_results(const c10::FunctionSchema& schema, const std::vector<graph::Arg>& args) {
  const std::optional<int> position = schema.argumentIndexWithName("output_mask");
  const auto* mask = position ? std::get_if<std::vector<bool>>(&args[static_cast<size_t>(*position)]) : nullptr;
  uint64_t unwanted = 0;
  for (size_t i = 0; mask != nullptr && i < mask->size(); ++i) unwanted |= uint64_t{!(*mask)[i]} << i;
  return unwanted;
}

namespace {

constexpr const char* kOnlyData = "an operator without a native rule on data-dependent sizes";

int64_t specialize(Capture& capture, ExprId e) {
  const std::optional<int64_t> value = capture.env().specialize(e, current_reason());
  if (!value) abort_capture(BreakKind::DataDependentSize, kOnlyData);
  return *value;
}

thread_local std::unordered_set<std::string>* unpredictable = nullptr;  // of the running function
std::mutex unpredictable_mutex;  // for all functions: threads may share a function

class GenericRule {
 public:
  GenericRule(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args)
      : capture_(capture),
        call_(capture, op, args),
        exact_(is_unpredictable(graph::op_name(op)) ||
               (must_run(op) && ops::traits(op).inference != ops::Inference::RunsOften) || call_.is_on_trust()) {}

  uint64_t absent() const { return call_.absent(); }

  std::vector<graph::TensorType> run() {
    if (exact_) return types(called([&](ExprId e) { return specialize(capture_, e); }), nullptr);
    SizePredictor predictor(capture_.env(), call_.sizes());
    const Tensors base = at_hints(predictor);
    dense_.assign(base.size(), {Layout::Contiguous, Layout::ChannelsLast});
    look_whether_dense(base);
    const Geometry here = geometry(base);
    Observed observed;
    observed.all_moved = predictor.points().empty();  // plain sizes
    for (const SizePredictor::Point& point : predictor.points()) observe(predictor, point, here, observed);
    if (observed.other_count) return run_specializing(deciding_the_count(predictor, base.size()));
    if (!observed.all_moved && found_equal(predictor, observed.taken)) return run_again();
    for (const SizePredictor::Point& point : predictor.closer_points()) {
      if (observed.all_moved) break;
      observe(predictor, point, here, observed);
    }
    if (observed.other_count) return run_specializing(deciding_the_count(predictor, base.size()));
    for (size_t i = 0; i < observed.taken.size(); ++i)
      predictor.observe(observed.taken[i], numbers(observed.results[i]));
    // Specializes sizes such as a weight's: the operator accepts no other values of them, so nothing can be observed.
    if (const std::vector<sym::VarId> needed = predictor.never_moved(); !observed.all_moved && !needed.empty()) {
      std::vector<ExprId> symbols;
      for (const sym::VarId var : needed) symbols.push_back(capture_.env().pool().var(var));
      return run_specializing(symbols);
    }
    if (const std::vector<ExprId> still = predictor.still(); observed.all_moved && !still.empty())
      return run_specializing(still);
    if (!observed.all_moved || !predictor.fit(numbers(here))) {
      for (const ExprId e : call_.sizes()) specialize(capture_, e);
      return types(base, nullptr);
    }
    return types(base, &predictor);
  }

  std::vector<graph::TensorType> run_specializing(const std::vector<ExprId>& sizes) {
    for (const ExprId e : sizes) specialize(capture_, e);
    return run_again();
  }
  std::vector<graph::TensorType> run_again() {  // after new knowledge about the sizes
    call_.gather();
    return run();
  }

 private:
  enum class Layout : uint8_t { Contiguous, ChannelsLast };
  using Geometry = std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>;  // sizes, strides of results
  struct Observed {
    std::vector<SizePredictor::Point> taken;  // points which the operator accepted
    std::vector<Geometry> results;
    bool all_moved = false;
    bool other_count = false;  // another number of results
  };

  // nullopt: the operator rejects these sizes.
  std::optional<Tensors> results_at(const SizePredictor& predictor, const SizePredictor::Point& point) const {
    try {
      return call_.run([&](ExprId e) { return predictor.value(point, e).value(); });
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  void observe(const SizePredictor& predictor, const SizePredictor::Point& point, const Geometry& here,
               Observed& observed) {
    const std::optional<Tensors> there = results_at(predictor, point);
    if (!there) return;  // a rejection says nothing about other sizes
    observed.other_count = observed.other_count || there->size() != here.size();
    if (observed.other_count) return;
    look_whether_dense(*there);
    observed.taken.push_back(point);
    observed.results.push_back(geometry(*there));
    observed.all_moved =
        observed.all_moved || (predictor.moves_all(point) && tells_strides(here, observed.results.back()));
  }

  // Sizes which decide the number of results: those with an effect alone, else all.
  std::vector<ExprId> deciding_the_count(const SizePredictor& predictor, size_t count) const {
    std::vector<ExprId> alone, all;
    for (const sym::VarId var : predictor.symbols()) {
      const ExprId size = capture_.env().pool().var(var);
      all.push_back(size);
      for (const SizePredictor::Point& point : predictor.points_moving({var})) {
        const std::optional<Tensors> there = results_at(predictor, point);
        if (!there || there->size() == count) continue;
        alone.push_back(size);
        break;
      }
    }
    return alone.empty() ? all : alone;
  }

  // Finds sizes which the operator accepts only when they are equal, or broadcasts otherwise, and guards them to be
  // equal.
  bool found_equal(const SizePredictor& predictor, const std::vector<SizePredictor::Point>& taken) {
    for (const std::vector<sym::VarId>& vars : predictor.perhaps_equal(taken)) {
      const std::vector<SizePredictor::Point> points = predictor.points_moving(vars);
      if (!std::any_of(points.begin(), points.end(),
                       [&](const auto& point) { return results_at(predictor, point).has_value(); }))
        continue;
      bool any = false;
      for (size_t i = 1; i < vars.size(); ++i) {
        sym::ExprPool& pool = capture_.env().pool();
        const ExprId same = pool.eq(pool.var(vars[0]), pool.var(vars[i]));
        any = capture_.env().evaluate(same, [] { return current_reason(); }).value_or(false) || any;
      }
      if (any) return true;
    }
    return false;
  }

  // Strides which are always contiguous, or always channels last, need no observation: they follow from the sizes.
  void look_whether_dense(const Tensors& tensors) {
    for (size_t i = 0; i < std::min(dense_.size(), tensors.size()); ++i)
      std::erase_if(dense_[i], [&](Layout layout) {
        return tensors[i].strides() != c10::IntArrayRef(strides_of(layout, tensors[i].sizes()));
      });
  }

  static std::vector<int64_t> strides_of(Layout layout, c10::IntArrayRef sizes) {
    if (layout == Layout::Contiguous) {
      const auto strides = c10::contiguous_strides(sizes);
      return {strides.begin(), strides.end()};
    }
    if (sizes.size() == 4) return c10::get_channels_last_strides_2d(sizes);
    return sizes.size() == 5 ? c10::get_channels_last_strides_3d(sizes) : std::vector<int64_t>();
  }

  std::vector<ExprId> strides_of(Layout layout, const std::vector<ExprId>& sizes) const {
    sym::ExprPool& pool = capture_.env().pool();
    if (layout == Layout::Contiguous) return graph::contiguous_strides(pool, sizes);
    std::vector<ExprId> moved = sizes;
    std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
    std::vector<ExprId> strides = graph::contiguous_strides(pool, moved);
    std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
    return strides;
  }

  // Strides at sizes of 0 and 1 say nothing about other sizes: a varying size must be observed above 1.
  static bool tells_strides(const Geometry& at_hints, const Geometry& there) {
    for (size_t i = 0; i < std::min(at_hints.size(), there.size()); ++i) {
      const std::vector<int64_t>&sizes = there[i].first, &before = at_hints[i].first;
      for (size_t d = 0; d < std::min(sizes.size(), before.size()); ++d)
        if (sizes[d] < 2 && sizes[d] != before[d]) return false;
    }
    return true;
  }

  static Geometry geometry(const Tensors& tensors) {
    Geometry out;
    for (const at::Tensor& t : tensors) out.emplace_back(t.sizes().vec(), t.strides().vec());
    return out;
  }

  std::vector<int64_t> numbers(const Geometry& results) const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto& [sizes, strides] = results[i];
      out.insert(out.end(), sizes.begin(), sizes.end());
      if (i >= dense_.size() || dense_[i].empty()) out.insert(out.end(), strides.begin(), strides.end());
    }
    return out;
  }

  static bool is_unpredictable(std::string_view name) {
    if (unpredictable == nullptr) return false;
    const std::lock_guard lock(unpredictable_mutex);
    return unpredictable->count(std::string(name)) != 0;
  }

  Tensors called(const std::function<int64_t(ExprId)>& value) {
    try {
      return call_.run(value);
    } catch (const std::exception&) {  // a missing kernel is said in several ways (FFT of float16)
      if (!call_.turn_to_wider_floats() && !call_.turn_to_another_way()) throw;
      return called(value);
    }
  }

  // An error of the operator for a guessed data-dependent size is no error for the caller's data.
  Tensors at_hints(const SizePredictor& predictor) {
    try {
      return called([&](ExprId e) { return predictor.value(predictor.hints(), e).value(); });
    } catch (const std::exception&) {
      if (predictor.guesses()) abort_capture(BreakKind::DataDependentSize, kOnlyData);
      throw;
    }
  }

  std::vector<graph::TensorType> types(const Tensors& base, const SizePredictor* predictor) {
    std::vector<graph::TensorType> out;
    size_t next = 0;
    const auto number = [&](int64_t value) {
      const size_t i = next++;
      return predictor != nullptr ? predictor->expression(i) : capture_.env().pool().constant(value);
    };
    for (size_t i = 0; i < base.size(); ++i) {
      const at::Tensor& t = base[i];
      graph::TensorType type;
      const std::optional<DType> dtype = from_torch(t.scalar_type());
      if (!dtype) abort_capture(BreakKind::UnsupportedDtype, "a result dtype that graphs do not represent");
      type.dtype = call_.dtype_of_result(*dtype);
      type.device = call_.device();
      for (const int64_t s : t.sizes()) type.sizes.push_back(number(s));
      if (predictor != nullptr && !dense_[i].empty())
        type.strides = strides_of(dense_[i].front(), type.sizes);
      else
        for (const int64_t s : t.strides()) type.strides.push_back(number(s));
      out.push_back(std::move(type));
    }
    return out;
  }

  Capture& capture_;
  MetaCall call_;
  bool exact_;
  std::vector<std::vector<Layout>> dense_;  // by result: the layouts which it may always have
};

}  // namespace

std::vector<graph::TensorType> generic_rule(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args,
                                            uint64_t* absent) {
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (handle && asks_python_for_sizes(*handle))
    if (std::optional<graph::TensorType> type = pointwise_type(capture, *handle, op, args)) return {*std::move(type)};
  GenericRule rule(capture, op, args);
  std::vector<graph::TensorType> types = rule.run();
  if (absent != nullptr) *absent = rule.absent();
  return types;
}

void note_unpredictable(std::string_view op) {
  if (unpredictable == nullptr) return;
  const std::lock_guard lock(unpredictable_mutex);
  unpredictable->emplace(op);
}

std::unordered_set<std::string>* exchange_unpredictable(std::unordered_set<std::string>* of) {
  return std::exchange(unpredictable, of);
}

}  // namespace cresset::bridge
