"""The public interface: compile, control, shapes, modules."""
