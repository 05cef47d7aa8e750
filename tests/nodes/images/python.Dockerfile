# A stand-in for the official Python image, for machines that reach no registry: Debian's own Python, where that one has it.
FROM scratch
ADD base.tar /
RUN ln -s /usr/bin/python3 /usr/local/bin/python && ln -s /usr/bin/python3 /usr/local/bin/python3
CMD ["python3"]
