#include "bridge/decompositions/derivative_formulas.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/std.h>
#include <ATen/ops/var.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/capture/capture.h"
#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A reduction which returns a single element (min, max, median): all elements equal to it share its gradient.
using Choice = at::Tensor (*)(const at::Tensor&);
template <Choice choose>
struct Chosen : torch::autograd::Function<Chosen<choose>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self) {
    at::Tensor out = choose(self);
    context->save_for_backward({self, out});
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &self = saved[0], &out = saved[1];
    const at::Tensor equal = (self == out).logical_or(self.isnan().logical_and(out.isnan()));
    return {at::where(equal, gradients[0] / equal.sum(), 0).to(self.scalar_type()).contiguous()};
  }
};

// The derivative at a factor of 0 is the product of the remaining factors. For other factors, the factor is divided
// out.
struct Product : torch::autograd::Function<Product> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, int64_t dim, bool keep) {
    at::Tensor out = self.prod(dim, keep);
    context->save_for_backward({self, out});
    context->saved_data["dim"] = dim;
    context->saved_data["keep"] = keep;
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const int64_t dim = context->saved_data["dim"].toInt();
    const bool keep = context->saved_data["keep"].toBool();
    const at::Tensor& self = saved[0];
    const at::Tensor out = keep ? saved[1] : saved[1].unsqueeze(dim),
                     gradient = keep ? gradients[0] : gradients[0].unsqueeze(dim);
    const at::Tensor zero = self == 0, zeros = zero.sum(dim, true), others = at::where(zero, 1, self).prod(dim, true);
    const at::Tensor of_zero = at::where(zeros == 1, gradient * others.conj(), 0),
                     divided = at::where(zeros == 0, gradient * (out / self).conj(), 0);
    return {at::where(zero, of_zero, divided).to(self.scalar_type()), {}, {}};
  }
};

at::Tensor sums_from_the_end(const at::Tensor& of, int64_t dim) { return of.flip(dim).cumsum(dim).flip(dim); }

std::vector<int64_t> all_dims(const at::Tensor& of) {
  std::vector<int64_t> dims(static_cast<size_t>(of.dim()));
  std::iota(dims.begin(), dims.end(), int64_t{0});
  return dims;
}
c10::SymInt elements_along(const at::Tensor& of, const std::vector<int64_t>& dims) {
  c10::SymInt count = 1;
  for (const int64_t dim : dims) count = count * of.sym_size(dim);
  return count;
}

// Variance, or its root.
template <bool root>
struct Spread : torch::autograd::Function<Spread<root>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, const std::vector<int64_t>& dims,
                            int64_t correction, bool keep) {
    at::Tensor out = root ? at::std(self, dims, correction, keep) : at::var(self, dims, correction, keep);
    context->save_for_backward({self, out});
    context->saved_data["dims"] = dims;
    context->saved_data["correction"] = correction;
    context->saved_data["keep"] = keep;
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &self = saved[0], &out = saved[1];
    const std::vector<int64_t> dims = context->saved_data["dims"].toIntVector();
    at::Tensor gradient = root ? at::where(out == 0, 0, gradients[0] / (out * 2)) : gradients[0];
    if (!context->saved_data["keep"].toBool())
      for (const int64_t dim : dims) gradient = gradient.unsqueeze(dim);
    const c10::SymInt freedom = elements_along(self, dims) - context->saved_data["correction"].toInt();
    return {(gradient * 2 * (self - self.mean(dims, true))).div(at::Scalar(freedom)), {}, {}, {}};
  }
};

struct Sums : torch::autograd::Function<Sums> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, int64_t dim) {
    context->saved_data["dim"] = dim;
    return self.cumsum(dim);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {sums_from_the_end(gradients[0], context->saved_data["dim"].toInt()), {}};
  }
};

// Before the first 0 each factor is divided out. The first 0 is left out of the later products. Factors after it
// influence only zeros.
struct Products : torch::autograd::Function<Products> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, int64_t dim) {
    at::Tensor out = self.cumprod(dim);
    context->save_for_backward({self, out});
    context->saved_data["dim"] = dim;
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const int64_t dim = context->saved_data["dim"].toInt();
    const at::Tensor &self = saved[0], &out = saved[1], &gradient = gradients[0];
    const at::Tensor zero = self == 0, zeros = zero.cumsum(dim), first = zero.logical_and(zeros == 1);
    const at::Tensor before = zeros == 0, others = at::where(first, 1, self).cumprod(dim);
    const at::Tensor of_first = at::where(before, 0, others.conj() * gradient).sum(dim, true);
    const at::Tensor of_others = sums_from_the_end(out.conj() * gradient, dim) / self.conj();
    return {at::where(before, of_others, at::where(first, of_first, 0)).to(self.scalar_type()), {}};
  }
};

// Power with a symbolic integer exponent, which autograd cannot compare with 0.
struct WholePower : torch::autograd::Function<WholePower> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, const c10::SymInt& exponent) {
    context->save_for_backward({self});
    context->saved_data["exponent"] = exponent;
    return self.pow(at::Scalar(exponent));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor self = context->get_saved_variables()[0];
    const c10::SymInt exponent = context->saved_data["exponent"].toSymInt();
    if (exponent == 0) return {at::zeros_like(self), {}};
    return {gradients[0] * (self.pow(at::Scalar(exponent - 1)) * at::Scalar(exponent)).conj(), {}};
  }
};

// Autograd's formula tests the layout of the factors to choose between two ways to the same numbers.
struct MatrixProduct : torch::autograd::Function<MatrixProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b) {
    context->save_for_backward({a, b});
    return a.mm(b);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    variable_list out(2);
    if (context->needs_input_grad(0)) out[0] = gradients[0].mm(saved[1].t().conj());
    if (context->needs_input_grad(1)) out[1] = saved[0].t().conj().mm(gradients[0]);
    return out;
  }
};

// The copies of each element form a single dimension to sum over, whatever their number.
struct Repeated : torch::autograd::Function<Repeated> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self, at::SymIntArrayRef repeats) {
    context->saved_data["sizes"] = self.sym_sizes();
    context->saved_data["repeats"] = repeats;
    return self.repeat_symint(repeats);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const std::vector<c10::SymInt> sizes = context->saved_data["sizes"].toSymIntVector(),
                                   repeats = context->saved_data["repeats"].toSymIntVector();
    const size_t added = repeats.size() - sizes.size();
    std::vector<c10::SymInt> shape;
    std::vector<int64_t> copies;
    for (size_t i = 0; i < repeats.size(); ++i) {
      if (i < added || repeats[i].maybe_as_int() != 1) {
        copies.push_back(static_cast<int64_t>(shape.size()));
        shape.push_back(repeats[i]);
      }
      if (i >= added) shape.push_back(sizes[i - added]);
    }
    const at::Tensor apart = gradients[0].reshape_symint(shape);
    return {copies.empty() ? apart : apart.sum(copies), {}};  // a sum over no dimension would sum over all
  }
};

at::Tensor largest(const at::Tensor& t) { return t.max(); }
at::Tensor smallest(const at::Tensor& t) { return t.min(); }
at::Tensor middle(const at::Tensor& t) { return t.median(); }
at::Tensor middle_number(const at::Tensor& t) { return t.nanmedian(); }

using Arguments = std::vector<c10::IValue>;

template <Choice choose>
at::Tensor chosen(const Arguments& args) {
  return Chosen<choose>::apply(args[0].toTensor());
}

// An explicit dtype is left to autograd, as are 0-dim tensors.
at::Tensor product(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  if (!args[1].isNone() || self.dim() == 0) return {};
  return Product::apply(self.reshape(-1), 0, false);
}
at::Tensor product_along(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  if (!args[3].isNone() || self.dim() == 0) return {};
  return Product::apply(self, c10::maybe_wrap_dim(args[1].toInt(), self.dim()), args[2].toBool());
}
at::Tensor products(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  if (!args[2].isNone() || self.dim() == 0) return {};
  return Products::apply(self, c10::maybe_wrap_dim(args[1].toInt(), self.dim()));
}
at::Tensor sums(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  if (!args[2].isNone() || self.dim() == 0) return {};
  return Sums::apply(self, c10::maybe_wrap_dim(args[1].toInt(), self.dim()));
}

// For a data-dependent element count, which autograd's formula converts to a float.
template <bool root>
at::Tensor spread(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  if (!args[2].isNone() && !args[2].isInt()) return {};
  std::vector<int64_t> dims = args[1].isNone() ? std::vector<int64_t>() : args[1].toIntVector();
  for (int64_t& dim : dims) dim = c10::maybe_wrap_dim(dim, self.dim());
  std::sort(dims.begin(), dims.end());
  if (dims.empty()) dims = all_dims(self);
  const c10::SymInt count = elements_along(self, dims);
  if (!count.is_symbolic() || count.toSymNodeImplUnowned()->has_hint()) return {};
  return Spread<root>::apply(self, dims, args[2].isNone() ? 1 : args[2].toInt(), args[3].toBool());
}

bool is_whole(const c10::IValue& value) { return value.isSymInt() && value.toSymInt().is_symbolic(); }

// The tensor form of a float without a known number; undefined for any other value.
at::Tensor float_tensor(const c10::IValue& value, at::ScalarType dtype) {
  if (!value.isSymFloat() || !at::isFloatingType(dtype)) return {};
  const at::Tensor made = SymNode::operand_of(value.toSymFloat().toSymNodeImpl());
  return made.defined() ? made.to(dtype) : made;
}

// Also covers a symbolic integer.
at::Tensor number_tensor(const c10::IValue& value, at::ScalarType dtype) {
  if (!is_whole(value) || !at::isFloatingType(dtype)) return float_tensor(value, dtype);
  return at::full({}, at::Scalar(value.toSymInt()), at::TensorOptions().dtype(dtype));
}

at::Tensor interpolated(const Arguments& args) {
  const at::Tensor self = args[0].toTensor(), weight = number_tensor(args[2], self.scalar_type());
  return weight.defined() ? at::lerp(self, args[1].toTensor(), weight) : weight;
}
at::Tensor power(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  if (is_whole(args[1])) return WholePower::apply(self, args[1].toSymInt());
  const at::Tensor exponent = float_tensor(args[1], self.scalar_type());
  return exponent.defined() ? at::pow(self, exponent) : exponent;
}
at::Tensor power_of_number(const Arguments& args) {
  const at::Tensor exponent = args[1].toTensor(), base = number_tensor(args[0], exponent.scalar_type());
  return base.defined() ? at::pow(base, exponent) : base;
}
at::Tensor product_of_matrices(const Arguments& args) {
  const at::Tensor a = args[0].toTensor(), b = args[1].toTensor();
  const auto is_asked = [](const at::Tensor& t) {
    const auto varies = [](const c10::SymInt& stride) { return stride.is_symbolic(); };
    return t.layout() == at::kStrided && std::any_of(t.sym_strides().begin(), t.sym_strides().end(), varies);
  };
  if (a.dim() != 2 || b.dim() != 2 || !(is_asked(a) || is_asked(b))) return {};
  return MatrixProduct::apply(a, b);
}
// For real numbers a sign has no gradient, but autograd's formula needs the sizes for the zeros.
struct Sign : torch::autograd::Function<Sign> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& self) {
    context->save_for_backward({self});
    return self.sgn();
  }
  static variable_list backward(AutogradContext* context, const variable_list&) {
    return {at::zeros_like(context->get_saved_variables()[0])};
  }
};
at::Tensor sign(const Arguments& args) {
  const at::Tensor self = args[0].toTensor();
  return self.is_complex() ? at::Tensor() : Sign::apply(self);
}
at::Tensor left_to_autograd(const Arguments&) { return {}; }

at::Tensor repeated(const Arguments& args) {
  const std::vector<c10::SymInt> repeats = args[1].toSymIntVector();
  const auto varies = [](const c10::SymInt& n) { return n.is_symbolic(); };
  const at::Tensor self = args[0].toTensor();
  if (static_cast<int64_t>(repeats.size()) < self.dim() || std::none_of(repeats.begin(), repeats.end(), varies))
    return {};
  return Repeated::apply(self, at::SymIntArrayRef(repeats));
}

// Autograd keeps an argument's storage offset, which a proxy tensor lacks. The capture cannot continue either: it ends
// before autograd reads the offset.
at::Tensor placed(const Arguments& args) {
  Capture* capture = Capture::current();
  const TraceTensor* trace = capture != nullptr && !capture->closed() ? TraceTensor::from(args[0].toTensor()) : nullptr;
  if (trace != nullptr && !args[3].isNone() && capture->storages().is_callers(*trace) &&
      !capture->storages().starts_storage(*trace))
    capture->flush({BreakKind::UnsupportedLayout, "as_strided at an offset in an argument's storage"});
  return {};
}

bool wants_gradients(const Arguments& args) {
  const auto wants = [](const c10::IValue& arg) { return arg.isTensor() && arg.toTensor().requires_grad(); };
  return at::GradMode::is_enabled() && std::any_of(args.begin(), args.end(), wants);
}

// Whether only autograd observes the call: forward-mode derivatives and function transforms need rules of their own.
bool is_recorded(const Arguments& args) {
  if (!at::functorch::getDynamicLayerStack().empty()) return false;
  const at::Tensor* first = nullptr;
  for (const c10::IValue& arg : args) {
    if (!arg.isTensor() || !arg.toTensor().defined()) continue;
    if (arg.toTensor()._fw_grad(/*level=*/0).defined()) return false;
    if (first == nullptr) first = &arg.toTensor();
  }
  return first != nullptr && wants_gradients(args) &&
         (at::isFloatingType(first->scalar_type()) || at::isComplexType(first->scalar_type()));
}

struct OwnDerivative {
  const char* name;
  at::Tensor (*apply)(const Arguments&);  // undefined: autograd's own formula is used
};

constexpr OwnDerivative kOwn[] = {
    {"max", chosen<largest>},
    {"min", chosen<smallest>},
    {"median", chosen<middle>},
    {"nanmedian", chosen<middle_number>},
    {"prod", product},
    {"prod.dim_int", product_along},
    {"cumprod", products},
    {"cumsum", sums},
    {"var.correction", spread<false>},
    {"std.correction", spread<true>},
    {"lerp.Scalar", interpolated},
    {"pow.Tensor_Scalar", power},
    {"pow.Scalar", power_of_number},
    {"pow_.Scalar", left_to_autograd},
    {"repeat", repeated},
    {"mm", product_of_matrices},
    {"sgn", sign},
    {"as_strided", placed},
};

// Operators whose formulas compare a number with 0, which fails for a symbolic number.
constexpr std::string_view kOfNumbers[] = {"pow.Tensor_Scalar", "pow_.Scalar", "pow.Scalar"};

// Replaces symbolic numbers by plain numbers, with guards.
void make_plain(torch::jit::Stack& stack, size_t count) {
  for (size_t i = stack.size() - count; i < stack.size(); ++i)
    if (is_whole(stack[i])) stack[i] = stack[i].toSymInt().guard_int(__FILE__, __LINE__);
}

// The remaining calls use autograd's own kernel, taken from another backend: it is the same kernel.
class Kernel final : public c10::OperatorKernel {
 public:
  Kernel(const OwnDerivative& own, c10::SafeKernelFunction autograd)
      : own_(own),
        of_numbers_(std::find(std::begin(kOfNumbers), std::end(kOfNumbers), own.name) != std::end(kOfNumbers)),
        autograd_(std::move(autograd)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    const size_t count = op.schema().arguments().size();
    const Arguments args(stack->end() - static_cast<long>(count), stack->end());
    const at::Tensor made = is_recorded(args) ? own_.apply(args) : at::Tensor();
    if (!made.defined()) {
      if (of_numbers_ && wants_gradients(args)) make_plain(*stack, count);
      return autograd_.callBoxed(op, keys, stack);
    }
    torch::jit::drop(*stack, count);
    torch::jit::push(*stack, made);
  }

 private:
  const OwnDerivative& own_;
  bool of_numbers_;
  c10::SafeKernelFunction autograd_;
};

// Runs before a function transform, which differentiates by autograd's formulas.
class BeforeTransforms final : public c10::OperatorKernel {
 public:
  explicit BeforeTransforms(c10::SafeKernelFunction transform) : transform_(std::move(transform)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
    const auto differentiates = [](const at::functorch::DynamicLayer& layer) {
      return layer.key() != at::functorch::TransformType::Vmap;
    };
    const auto& layers = at::functorch::getDynamicLayerStack();
    if (std::any_of(layers.begin(), layers.end(), differentiates)) make_plain(*stack, op.schema().arguments().size());
    transform_.callBoxed(op, keys, stack);
  }

 private:
  c10::SafeKernelFunction transform_;
};

c10::OperatorHandle operator_named(const std::string& name) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string overload = dot < name.size() ? name.substr(dot + 1) : std::string();
  return c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name.substr(0, dot)).c_str(), overload.c_str());
}

template <typename Kernel>
void install(torch::Library& library, const std::string& name, std::unique_ptr<Kernel> kernel) {
  library.impl(name.c_str(),
               torch::CppFunction::makeFromBoxedKernel(c10::BoxedKernel::makeFromFunctor(std::move(kernel))));
}

}  // namespace

void install_derivative_formulas() {
  using c10::DispatchKey;
  static auto* libraries = [] {
    constexpr DispatchKey keys[] = {DispatchKey::AutogradPrivateUse3, DispatchKey::FuncTorchDynamicLayerFrontMode};
    auto* made = new std::vector<torch::Library>;
    for (const DispatchKey key : keys) made->emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    for (const OwnDerivative& own : kOwn) {
      auto autograd = operator_named(own.name).getComputedKernelForDispatchKey(DispatchKey::AutogradCPU);
      install(made->front(), own.name, std::make_unique<Kernel>(own, std::move(autograd)));
    }
    for (const std::string_view name : kOfNumbers) {
      auto transform = operator_named(std::string(name)).getComputedKernelForDispatchKey(keys[1]);
      install(made->back(), std::string(name), std::make_unique<BeforeTransforms>(std::move(transform)));
    }
    return made;
  }();
  (void)libraries;
}

}  // namespace cresset::bridge
