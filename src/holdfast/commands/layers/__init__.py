"""The layer of a workspace that takes what programs change: what they are shown, what they changed, what is only scratch.

Programs own the layer's content. So everything here goes by descriptors and follows no link.
"""
