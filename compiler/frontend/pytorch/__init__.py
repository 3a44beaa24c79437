"""PyTorch's modules and exported programs, as ONNX models.

A module is captured by ``torch.export`` (``capture.py``), its quantizers are brought into one form
(``quantizers.py``), and PyTorch's own exporter writes ONNX, with our translations of that form
(``translations.py``). A node is named after its module's path and has its line of Python with it
(``sources.py``). PyTorch is imported when one of these files is.
"""
