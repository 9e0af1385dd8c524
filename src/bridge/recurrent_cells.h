// What a step of a recurrent layer does to each element of its state, and its derivative, for f32: one loop over all
// gates (recurrent_steps.h says what they are). Rows are the batch.
#pragma once

#include <cstdint>

namespace cresset::bridge {

// A matrix of rows whose elements lie side by side.
template <class T>
struct Rows {
  T* data = nullptr;  // null: there is none
  int64_t stride = 0;
  T* operator[](int64_t row) const { return data == nullptr ? nullptr : data + row * stride; }
};

struct CellForward {
  int64_t rows = 0, features = 0;
  Rows<const float> given, from_state, before, cell_before;
  const float* bias = nullptr;
  Rows<float> kept, out;
};
void lstm_cells(const CellForward& step);
void gru_cells(const CellForward& step);
void tanh_cells(const CellForward& step);
void relu_cells(const CellForward& step);

struct CellBackward {
  int64_t rows = 0, features = 0;
  Rows<const float> gradient, later, kept, out, before, cell_before;  // later: what the steps after it give
  Rows<float> cell;                                                   // its gradient: of after, then of before
  Rows<float> gates;
  // gru's alone: gradients of what the state gives to the gates, and of the state past them: of after, then of before.
  Rows<float> hidden, otherwise;
};
void lstm_cells_backward(const CellBackward& step);
void gru_cells_backward(const CellBackward& step);
void tanh_cells_backward(const CellBackward& step);
void relu_cells_backward(const CellBackward& step);

}  // namespace cresset::bridge
