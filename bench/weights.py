"""weights - a file of weights out of tensors of PyTorch, for losses_torch and gpt_torch"""
import json
import struct


def write_weights(named, path):
    """named: pairs of a name and a tensor; as safetensors, fp32."""
    head, blobs, at = {}, [], 0
    for name, tensor in named:
        values = tensor.flatten().tolist()
        blobs.append(struct.pack(f"<{len(values)}f", *values))
        head[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(blobs[-1])]}
        at += len(blobs[-1])
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
